#include "document/plain_text.h"

#include <gtest/gtest.h>

#include "base/files.h"
#include "base/random.h"
#include "base/utf8.h"

namespace fovea {
namespace {

using Lines = std::vector<std::string>;

// Each sentence in brackets.
std::vector<Translation> marked(const Lines& sentences) {
  std::vector<Translation> all;
  for (const std::string& sentence : sentences)
    all.emplace_back().n_best.emplace_back().text = "[" + sentence + "]";
  return all;
}

Lines joined(const Lines& lines, const std::string& language = "en") {
  const PlainTextLines paragraphs(lines, language);
  return paragraphs.join(marked(paragraphs.sentences()));
}

TEST(PlainTextLines, AreSplitIntoSentencesWithLineNumbers) {
  const Lines lines{"One. Two!", "", "Mr. Three?", " Four"};
  const PlainTextLines paragraphs(lines, "en");
  EXPECT_EQ(paragraphs.sentences(), (Lines{"One.", "Two!", "Mr. Three?", "Four"}));
  EXPECT_EQ(paragraphs.lines(), (std::vector<size_t>{0, 0, 2, 3}));
  EXPECT_EQ(joined({"Am 3. Mai. Ja."}, "de"), Lines{"[Am 3. Mai.] [Ja.]"});
}

TEST(PlainTextLines, GiveOneLineForEachLine) {
  EXPECT_EQ(joined({"One. Two.", "", "Three."}), (Lines{"[One.] [Two.]", "", "[Three.]"}));
  EXPECT_EQ(joined({"One.\r\n\n  Two\nThree\tfour.\n"}), Lines{"[One.]   [Two] [Three\tfour.]"});
  EXPECT_EQ(joined({"\n", " \t ", "  One.  Two. "}), (Lines{"", "", "[One.]  [Two.]"}));
  EXPECT_EQ(joined({"…\n!"}), Lines{"… !"}) << "signs without words stay";
}

TEST(PlainTextLines, UnusualTextGivesOneLineForEachLine) {
  const std::string nasty = read_file(FOVEA_SOURCE "/tests/golden/nasty.txt");
  Random random(4);
  for (int round = 0; round < 200; ++round) {
    const size_t at = random.below(nasty.size()), size = random.below(400);
    const Lines lines{"One.", replace_invalid_utf8(nasty.substr(at, size)), "Two."};
    const Lines found = joined(lines);
    ASSERT_EQ(found.size(), 3u);
    EXPECT_EQ(found[1].find_first_of("\r\n"), std::string::npos) << lines[1];
    EXPECT_EQ(found[2], "[Two.]");
  }
}

TEST(PlainTextLines, TextInAnUnknownLanguageIsSplit) {
  EXPECT_EQ(joined({"One. Two."}, ""), Lines{"[One.] [Two.]"});
}

TEST(PlainTextLines, ASentenceWithoutTranslationGivesNoText) {
  const Lines lines{"One. Two."};
  const PlainTextLines paragraphs(lines, "en");
  std::vector<Translation> found = marked(paragraphs.sentences());
  found[0] = {};
  EXPECT_EQ(paragraphs.join(found), Lines{"[Two.]"});
}

}  // namespace
}  // namespace fovea
