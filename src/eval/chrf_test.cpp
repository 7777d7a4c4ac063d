#include "eval/chrf.h"

#include <gtest/gtest.h>

namespace fovea {
namespace {

TEST(Chrf, PerfectEmptyAndUnrelated) {
  EXPECT_NEAR(chrf({"hello"}, {"hello"}), 100.0, 1e-9);
  EXPECT_EQ(chrf({""}, {"hello"}), 0.0);
  EXPECT_EQ(chrf({"hello"}, {""}), 0.0);
  EXPECT_EQ(chrf({""}, {""}), 0.0);
  EXPECT_EQ(chrf({"abc"}, {"xyz"}), 0.0);
}

// One order: P = 2/2, R = 2/3, β = 2: F = 5·(2/3) / (4 + 2/3).
TEST(Chrf, RecallWeighsMoreThanPrecision) {
  EXPECT_NEAR(chrf({"ab"}, {"abc"}, {.char_order = 1}), 100 * (10. / 3) / (14. / 3), 1e-9);
  EXPECT_NEAR(chrf({"abc"}, {"ab"}, {.char_order = 1}), 100 * (10. / 3) / (8. / 3 + 1), 1e-9);
}

TEST(Chrf, WhiteSpaceCountsOnlyIfRequested) {
  EXPECT_NEAR(chrf({"a b"}, {"ab"}), 100.0, 1e-9);
  EXPECT_LT(chrf({"a b"}, {"ab"}, {.whitespace = true}), 100.0);
}

// A mark at the end is split off, otherwise a mark at the beginning: "(hi)" gives "(hi" and ")".
TEST(Chrf, WordsOfChrfPlusPlus) {
  Chrf metric({.char_order = 1, .word_order = 1});
  auto words = [&](const char* a, const char* b) {
    return metric.statistics({a}, std::vector<Lines>{{b}}).row(0)[5];
  };
  EXPECT_EQ(words("(hi)", "hi )"), 1.0);
  EXPECT_EQ(words("(hi", "( hi"), 2.0);
  EXPECT_EQ(words("!", "!"), 1.0);
  EXPECT_EQ(words("a-b", "a - b"), 0.0);
  EXPECT_EQ(Chrf({.word_order = 2}).name(), "chrF2++");
}

TEST(Chrf, TheBestReferenceCounts) {
  std::vector<Lines> references{{"xyz"}, {"abcdef"}, {"abcdeg"}};
  EXPECT_NEAR(corpus_score(Chrf(), {"abcdef"}, references), 100.0, 1e-9);
}

}  // namespace
}  // namespace fovea
