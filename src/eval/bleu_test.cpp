#include "eval/bleu.h"

#include <gtest/gtest.h>

#include <cmath>

#include "base/check.h"

namespace fovea {
namespace {

TEST(Bleu, PerfectEmptyAndUnrelated) {
  EXPECT_NEAR(bleu({"the cat sat on the mat"}, {"the cat sat on the mat"}), 100.0, 1e-9);
  EXPECT_EQ(bleu({""}, {"the cat"}), 0.0);
  EXPECT_EQ(bleu({"the cat"}, {""}), 0.0);
  EXPECT_EQ(bleu({"a b c d"}, {"e f g h"}), 0.0);
  EXPECT_EQ(bleu({}, {}), 0.0);
}

// Papineni et al., section 2.1: the clipped unigram precision of "the the the …" is 2/7.
TEST(Bleu, MatchesAreClipped) {
  Bleu metric;
  Lines hypothesis{"the the the the the the the"};
  std::vector<Lines> references{{"The cat is on the mat"}, {"There is a cat on the mat"}};
  EXPECT_EQ(metric.statistics(hypothesis, references).row(0)[2], 1.0);
  Bleu lower({.lowercase = true});
  auto statistics = lower.statistics(hypothesis, references);
  EXPECT_EQ(statistics.row(0)[2], 2.0);
  EXPECT_EQ(statistics.row(0)[6], 7.0);
}

TEST(Bleu, ReferenceLengthIsTheClosestOrTheShorterOne) {
  Bleu metric;
  std::vector<Lines> references{{"a b c d e"}, {"a b c"}, {"a b c d e f g"}};
  EXPECT_EQ(metric.statistics({"a b c d"}, references).row(0)[1], 3.0);
  EXPECT_EQ(metric.statistics({"a b c d e f"}, references).row(0)[1], 5.0);
}

TEST(Bleu, SmoothingOfASentence) {
  const Lines hypothesis{"a b x y z"}, reference{"a b c d e"};
  auto score = [&](BleuSmoothing smooth) {
    return bleu(hypothesis, reference, {.smooth = smooth});
  };
  // m = 2 1 0 0, t = 5 4 3 2
  auto mean = [](double a, double b, double c, double d) {
    return std::exp((std::log(a) + std::log(b) + std::log(c) + std::log(d)) / 4);
  };
  EXPECT_EQ(score(BleuSmoothing::none), 0.0);
  EXPECT_NEAR(score(BleuSmoothing::exp), mean(40, 25, 100. / 6, 100. / 8), 1e-9);
  EXPECT_NEAR(score(BleuSmoothing::floor), mean(40, 25, 10. / 3, 10. / 2), 1e-9);
  EXPECT_NEAR(score(BleuSmoothing::add_k), mean(40, 40, 25, 100. / 3), 1e-9);
}

TEST(Bleu, EffectiveOrderForShortSentences) {
  EXPECT_EQ(bleu({"two words"}, {"two words"}), 0.0);
  EXPECT_NEAR(bleu({"two words"}, {"two words"}, {.effective_order = true}), 100.0, 1e-9);
}

TEST(Bleu, CountsMustMatch) {
  try {
    bleu({"a", "b"}, {"a"});
    FAIL();
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), ExitCode::data);
  }
}

TEST(Bleu, SmoothingNames) {
  EXPECT_EQ(bleu_smoothing("add-k"), BleuSmoothing::add_k);
  EXPECT_THROW(bleu_smoothing("laplace"), Error);
}

}  // namespace
}  // namespace fovea
