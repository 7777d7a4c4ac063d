#include "eval/significance.h"

#include <gtest/gtest.h>

#include "base/check.h"
#include "eval/bleu.h"
#include "eval/pcg64.h"

namespace fovea {
namespace {

// numpy.random.default_rng(12345).bit_generator.random_raw(), and choice(10), integers(2)
TEST(Pcg64, DrawsTheNumbersOfNumpy) {
  Pcg64 raw;
  EXPECT_EQ(raw.next64(), 0x3a32b18db2ffc19du);
  EXPECT_EQ(raw.next64(), 0x51171315c9e4c4deu);
  EXPECT_EQ(raw.next64(), 0xcc2024823444efd9u);
  Pcg64 choice;
  for (uint32_t expected : {699u, 227u, 788u, 316u, 204u, 797u, 642u, 676u})
    EXPECT_EQ(choice.below(1000), expected);
  Pcg64 large;
  for (uint32_t expected : {2097645094u, 682008066u, 2365940964u, 950275018u, 2392096371u,
                            2028764011u, 2518275128u, 1794926260u})
    EXPECT_EQ(large.below(3000000000u), expected);
  CoinStream coins;
  for (int expected : {1, 0, 1, 1, 1, 0, 0, 1, 1, 0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 1,
                       1, 1, 1, 1, 0, 1, 0, 0, 1, 1, 0, 1, 1, 0, 1, 1, 0, 0, 0, 1})
    EXPECT_EQ(coins.toss(), expected == 1);
}

TEST(Significance, ASystemDoesNotDifferFromItself) {
  Bleu metric;
  Lines text{"the cat sat on the mat today", "a dog ran over the green hill", "it rains a lot now"};
  std::vector<Lines> references{
      {"the cat sat on a mat today", "a dog ran over the hill", "it rains"}};
  auto statistics = metric.statistics(text, references);
  for (PairedTest test : {PairedTest::bootstrap, PairedTest::approximate_randomization}) {
    auto results = paired_test(test, metric, {statistics, statistics}, 100);
    EXPECT_FALSE(results[0].p_value.has_value());
    EXPECT_EQ(*results[1].p_value, 1.0);
    EXPECT_EQ(results[0].score, results[1].score);
  }
}

// The same segments in another order: the scores are equal, but the segments differ.
TEST(Significance, EqualScoresOfUnequalSystems) {
  Bleu metric;
  Lines text{"the cat sat on the mat today", "a dog ran over the green hill"};
  Lines swapped{text[1], text[0]};
  std::vector<Lines> references{{"the cat sat on a mat today", "the cat sat on a mat today"}};
  auto a = metric.statistics(text, references), b = metric.statistics(swapped, references);
  EXPECT_NE(a.values, b.values);
  for (PairedTest test : {PairedTest::bootstrap, PairedTest::approximate_randomization}) {
    auto results = paired_test(test, metric, {a, b}, 100);
    EXPECT_EQ(results[0].score, results[1].score);
    EXPECT_EQ(*results[1].p_value, 1.0);
  }
}

TEST(Significance, NoSegmentsToResample) {
  EXPECT_THROW(bootstrap_scores(Bleu(), Bleu().statistics({}, std::vector<Lines>{{}}), 10), Error);
}

TEST(Significance, IntervalOfKnownScores) {
  std::vector<double> scores;
  for (int i = 1000; i > 0; --i) scores.push_back(i);
  ConfidenceInterval interval = confidence_interval(scores);
  EXPECT_EQ(interval.mean, 500.5);
  EXPECT_EQ(interval.ci, 0.5 * (975 - 26));
}

}  // namespace
}  // namespace fovea
