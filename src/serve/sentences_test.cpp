#include "serve/sentences.h"

#include <gtest/gtest.h>

#include "base/utf8.h"

namespace fovea {
namespace {

std::vector<std::string> sentences(std::string_view text, const std::string& language = "en") {
  std::vector<std::string> found;
  std::string all;
  for (const Stretch& s : split_sentences(text, language)) {
    all += s.text;
    if (s.is_sentence) found.emplace_back(s.text);
  }
  EXPECT_EQ(all, text) << "nothing may be lost";
  return found;
}

using List = std::vector<std::string>;

TEST(Sentences, EndAtPointsAndLineEnds) {
  EXPECT_EQ(sentences("One. Two!  Three?"), (List{"One.", "Two!", "Three?"}));
  EXPECT_EQ(sentences("One\r\n\n  two \n"), (List{"One", "two"}));
  EXPECT_EQ(sentences(""), List{});
  EXPECT_EQ(sentences(" \n\t "), List{});
  EXPECT_EQ(sentences("It costs 3.50 euros. Yes."), (List{"It costs 3.50 euros.", "Yes."}));
}

TEST(Sentences, GoOnAfterAbbreviationsAndOrdinals) {
  EXPECT_EQ(sentences("Mr. Smith saw Dr. Jones. He left."),
            (List{"Mr. Smith saw Dr. Jones.", "He left."}));
  EXPECT_EQ(sentences("J. S. Bach wrote it. I did not. So did I. Yes."),
            (List{"J. S. Bach wrote it.", "I did not.", "So did I.", "Yes."}));
  EXPECT_EQ(sentences("Am 3. Oktober war es kalt. Ja.", "de"),
            (List{"Am 3. Oktober war es kalt.", "Ja."}));
}

TEST(Sentences, SignsWithoutWordsStayAsTheyAre) {
  EXPECT_EQ(sentences("😀 !!! …"), List{});
  EXPECT_EQ(sentences("Hello 😀. *** Bye."), (List{"Hello 😀.", "*** Bye."}));
}

TEST(Sentences, LongOnesAreCutAtAPlaceThatAllowsIt) {
  std::string text;
  for (int i = 0; i < 400; ++i) text += i % 40 == 39 ? "word, " : "word ";
  for (const std::string& s : sentences(text)) {
    EXPECT_LE(s.size(), kLongestSentence);
    EXPECT_TRUE(s.starts_with("word"));
  }
  const std::string run(5000, 'x');
  EXPECT_EQ(sentences(run).size(), (5000 + kLongestSentence - 1) / kLongestSentence);
  std::string wide;
  for (int i = 0; i < 2000; ++i) wide += "ä";
  for (const std::string& s : sentences(wide)) EXPECT_TRUE(is_utf8(s));
}

}  // namespace
}  // namespace fovea
