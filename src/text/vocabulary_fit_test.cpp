#include "text/vocabulary_fit.h"

#include <gtest/gtest.h>

namespace fovea {
namespace {

TEST(VocabularyFit, CountsPiecesWordsAndUnknownOnes) {
  const Vocabulary words = Vocabulary::from_entries(Segmentation::words, {{"a", 2}, {"dog", 1}});
  VocabularyFit fit;
  EXPECT_EQ(fit.summary(),
            "0 lines: 0.00 pieces per line, 0.000 % unknown pieces, 0.00 % of words covered");
  fit.add(words, "a dog a cat");
  fit.add(words, "");
  EXPECT_EQ(fit.lines, 2);
  EXPECT_EQ(fit.pieces, 4);
  EXPECT_EQ(fit.words, 4);
  EXPECT_EQ(fit.whole_words, 3);
  EXPECT_EQ(fit.unknown, 1);
  EXPECT_EQ(fit.summary(),
            "2 lines: 2.00 pieces per line, 25.000 % unknown pieces, 75.00 % of words covered");
}

}  // namespace
}  // namespace fovea
