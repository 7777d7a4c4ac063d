#include "view/terminal.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <sstream>

#include "base/check.h"
#include "view/label.h"

namespace fovea {
namespace {

AttentionMatrix small() {
  return {.source = {"the", "dog"},
          .target = {"der", "Hund"},
          .weights = {0.9f, 0.1f, 0.25f, 0.75f},
          .title = "dog"};
}

TerminalOptions from(std::map<std::string, std::string> variables, bool to_terminal) {
  const auto get = [&](const char* name) {
    const auto found = variables.find(name);
    return found == variables.end() ? nullptr : found->second.c_str();
  };
  return terminal_options(get, to_terminal);
}

std::vector<std::string> lines_of(const std::string& text) {
  std::istringstream in(text);
  std::vector<std::string> lines;
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  return lines;
}

TEST(Terminal, DrawsBlocks) {
  EXPECT_EQ(terminal_map(small(), {.shades = TerminalShades::blocks}),
            "dog\n\n"
            "     the\n"
            "     │ dog\n"
            " der █<▁▁  .90 the\n"
            "Hund ▂▂▆<  .75 dog\n"
            "\n"
            "     0  ▁▁▂▂▃▃▄▄▅▅▆▆▇▇██ 1   █< largest of its row\n");
}

TEST(Terminal, ShadesRunningWords) {
  EXPECT_EQ(shaded_words(small(), 0, {.shades = TerminalShades::blocks}), "the█ dog▁");
  EXPECT_EQ(shaded_words(small(), 1, {.shades = TerminalShades::ascii}), "the: dog*");
  AttentionMatrix one = small();
  one.weights[0] = 0;
  const std::string text = shaded_words(one, 0, {.shades = TerminalShades::colours_24_bit});
  EXPECT_EQ(text.find("the \x1b[48;2;"), 0u) << "no background for weight 0: " << text;
  EXPECT_TRUE(text.ends_with("dog\x1b[0m"));
}

TEST(Terminal, DrawsAscii) {
  const std::string text = terminal_map(small(), {.shades = TerminalShades::ascii});
  EXPECT_NE(text.find(" der @<..  .90 the\n"), std::string::npos);
  for (char c : text) EXPECT_LT(static_cast<unsigned char>(c), 0x80);
}

TEST(Terminal, PaintsInColour) {
  const std::string deep = terminal_map(small(), {.shades = TerminalShades::colours_24_bit});
  EXPECT_NE(deep.find("\x1b[48;2;"), std::string::npos);
  EXPECT_NE(deep.find("[]\x1b["), std::string::npos);
  const std::string indexed = terminal_map(small(), {.shades = TerminalShades::colours_256});
  EXPECT_NE(indexed.find("\x1b[48;5;"), std::string::npos);
  EXPECT_EQ(indexed.find("48;2;"), std::string::npos);
}

TEST(Terminal, ReadsTheEnvironment) {
  EXPECT_EQ(from({}, true).shades, TerminalShades::ascii);
  EXPECT_EQ(from({{"LANG", "de_DE.UTF-8"}}, true).shades, TerminalShades::blocks);
  EXPECT_EQ(from({{"LC_ALL", "C"}, {"LANG", "de_DE.UTF-8"}}, true).shades, TerminalShades::ascii);
  EXPECT_EQ(from({{"TERM", "xterm-256color"}}, true).shades, TerminalShades::colours_256);
  std::map<std::string, std::string> deep{{"COLORTERM", "truecolor"}, {"LANG", "C.UTF-8"}};
  EXPECT_EQ(from(deep, true).shades, TerminalShades::colours_24_bit);
  EXPECT_EQ(from(deep, false).shades, TerminalShades::blocks);
  deep["NO_COLOR"] = "1";
  EXPECT_EQ(from(deep, true).shades, TerminalShades::blocks);
  EXPECT_EQ(from({{"COLUMNS", "133"}}, true).width, 133);
  EXPECT_EQ(from({{"COLUMNS", "-5"}}, true).width, 80);
  EXPECT_TRUE(from({}, true).dark_ground);
  EXPECT_FALSE(from({{"COLORFGBG", "0;15"}}, true).dark_ground);
}

TEST(Terminal, FitsTheWidth) {
  for (const size_t words : {20, 97}) {
    AttentionMatrix m;
    for (size_t j = 0; j < words; ++j) m.source.push_back("word" + std::to_string(j));
    m.target = {"日本語", "a very long target word indeed", "x"};
    m.weights.assign(words * 3, 0.01f);
    for (int width : {20, 40, 80, 203}) {
      const auto text = terminal_map(m, {.shades = TerminalShades::blocks, .width = width});
      for (const std::string& line : lines_of(text)) EXPECT_LE(columns(line), std::max(width, 25));
    }
  }
}

TEST(Terminal, CutsLongSentencesIntoPanelsWithEveryWord) {
  AttentionMatrix m;
  for (int j = 0; j < 20; ++j) m.source.push_back("w" + std::to_string(j));
  m.target = {"x"};
  m.weights.assign(20, 0);
  m.weights[19] = 1;
  const std::string text = terminal_map(m, {.width = 30});
  for (const std::string& word : m.source) EXPECT_NE(text.find(word + "\n"), std::string::npos);
  EXPECT_NE(text.find("to 20 of 20"), std::string::npos);
}

// Eighteen words in 40 and 80 columns: no line is wider, and each panel repeats the row labels.
TEST(Terminal, FitsNarrowTerminalsWithWideCharacters) {
  AttentionMatrix m;
  for (int j = 0; j < 18; ++j) m.source.push_back(j % 3 ? "garden" : "学生学生");
  for (int i = 0; i < 12; ++i) m.target.push_back(i % 2 ? "gesehen." : "我们的老师");
  m.weights.assign(18 * 12, 1.0f / 18);
  for (const int width : {40, 80}) {
    const std::string text = terminal_map(m, {.shades = TerminalShades::blocks, .width = width});
    size_t panels = 0, labels = 0;
    for (const std::string& line : lines_of(text)) {
      EXPECT_LE(columns(line), width) << line;
      panels += line.find(" of 18") != std::string::npos;
      labels += line.find("gesehen. ") != std::string::npos;
    }
    EXPECT_EQ(labels, 6 * std::max<size_t>(panels, 1)) << text;
    if (width == 40) {
      EXPECT_GT(panels, 1u) << text;
    }
  }
}

TEST(Terminal, NeverPrintsEscapesOfTheInput) {
  AttentionMatrix m = small();
  m.source[0] = "\x1b]0;owned\x07";
  m.target[1] = "\x1b[2J\r\n\b\u009B31m";
  m.title = "\x1b[5mtitle\n";
  const std::string text = terminal_map(m, {.shades = TerminalShades::blocks, .width = 120});
  for (char c : text) EXPECT_TRUE(c == '\n' || static_cast<unsigned char>(c) >= 0x20);
  EXPECT_EQ(text.find("\u009B"), std::string::npos);
  EXPECT_EQ(lines_of(text).size(), 8u);
}

TEST(Terminal, KeepsRightToLeftWordsInPlace) {
  const std::string text = terminal_map({.source = std::vector<std::string>(21, "שלום"),
                                         .target = {"x"},
                                         .weights = std::vector<float>(21, 0.0f)},
                                        {});
  EXPECT_NE(text.find("\u200Eש\u200E"), std::string::npos);
}

TEST(Terminal, MarksUndefinedAndRejectsMissingWeights) {
  AttentionMatrix m = small();
  m.weights[1] = std::nanf("");
  EXPECT_NE(terminal_map(m, {}).find("??"), std::string::npos);
  m.weights.pop_back();
  EXPECT_THROW(terminal_map(m, {}), Error);
  EXPECT_EQ(terminal_map({}, {}), "(no words, no attention)\n");
}

}  // namespace
}  // namespace fovea
