#include "explain/steps_text.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <sstream>

#include "view/label.h"

namespace fovea {
namespace {

const std::vector<std::string> kWords{"▁The", "▁dog", "s", "</s>"};

ComputationSteps example(size_t size) {
  ComputationSteps steps;
  steps.query("q", "q = W x: the query", std::vector<double>(size, -1.5));
  steps.words("k_j", "k_j: the keys",
              std::vector<std::vector<double>>(4, std::vector<double>(size, 0.25)));
  steps.column("q·k_j", "q·k_j: their product", {12.5, -0.125, 1234.5, -99.5});
  steps.column("α_j", "α_j: weights", {0.5, 0.25, 0.25, 0}, ComputationStep::Display::share);
  steps.words("v_j", "Σ_j α_j v_j: the sum",
              std::vector<std::vector<double>>(4, std::vector<double>(size, 2)));
  steps.words("α_j v_j", "", std::vector<std::vector<double>>(4, std::vector<double>(size, 0.5)));
  steps.query("Σ_j α_j v_j", "", std::vector<double>(size, 0.75));
  return steps;
}

std::vector<std::string> lines_of(const std::string& text) {
  std::istringstream in(text);
  std::vector<std::string> lines;
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  return lines;
}

TEST(TerminalSteps, FitTheWidth) {
  for (const int width : {60, 80, 120})
    for (const size_t size : {1u, 3u, 64u})
      for (const std::string& line :
           lines_of(terminal_steps(example(size), kWords, {.width = width})))
        EXPECT_LE(columns(line), width) << line;
}

TEST(TerminalSteps, NumberFormulasAndCutVectors) {
  const std::string text = terminal_steps(example(64), kWords, {.width = 80});
  for (const char* part : {"1  q = W x", "2  k_j: the keys", "5  Σ_j α_j v_j: the sum", "-1.500",
                           "0.250  0.250  0.250 …", "12.50", "-0.125", "1e+03", "-99.50",
                           "0.500 ████\n", "0.250 ██\n", "Σ_j α_j v_j   0.750"})
    EXPECT_NE(text.find(part), std::string::npos) << part << " is not in\n" << text;
  EXPECT_EQ(text.find("6  "), std::string::npos);
  // A short vector is printed completely.
  EXPECT_EQ(terminal_steps(example(3), kWords, {.width = 80}).find("…"), std::string::npos);
}

TEST(TerminalSteps, ColumnsOfOneStepStayTogether) {
  for (const size_t size : {3u, 64u})
    for (const int width : {70, 80, 90}) {
      const std::string text =
          terminal_steps(example(size), {"a", "b", "c", "d"}, {.width = width});
      const size_t head = text.find("  v_j");
      ASSERT_NE(head, text.npos);
      EXPECT_LT(text.find("α_j v_j", head), text.find('\n', head)) << text;
    }
}

TEST(TerminalSteps, AreAlignedWithTheirNames) {
  const auto lines = lines_of(terminal_steps(example(64), kWords, {.width = 80}));
  const auto head = std::ranges::find_if(lines, [](const std::string& line) {
    return line.find("k_j") != line.npos && line.starts_with(" ");
  });
  ASSERT_NE(head, lines.end());
  const std::string before = head->substr(0, head->find("q·k_j") + std::string("q·k_j").size());
  const std::string& first = *(head + 1);
  EXPECT_EQ(columns(before), columns(first.substr(0, first.find("12.50") + 5)));
}

TEST(TerminalSteps, HavePlainCharactersIfRequested) {
  const std::string text = terminal_steps(example(64), {"a", "b", "c", "d"},
                                          {.shades = TerminalShades::ascii, .width = 80});
  EXPECT_NE(text.find("0.500 ####\n"), std::string::npos) << text;
  EXPECT_EQ(text.find("█"), std::string::npos);
}

}  // namespace
}  // namespace fovea
