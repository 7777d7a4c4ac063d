#include "train/loss_spike.h"

#include <gtest/gtest.h>

#include <cmath>

#include "base/random.h"

namespace fovea {
namespace {

// Typical training losses: they fall with noise, and some batches are much harder.
double usual_loss(int64_t update, Random& random) {
  const double level = 2 + 7 * std::exp(-static_cast<double>(update) / 300);
  return level * (1 + 0.05 * random.normal()) + (random.below(97) == 0 ? 2 : 0);
}

TEST(SpikeWatch, IsQuietInCleanRuns) {
  for (uint64_t seed = 0; seed < 20; ++seed) {
    Random random(seed);
    SpikeWatch watch;
    for (int64_t t = 0; t < 5000; ++t) EXPECT_FALSE(watch.take(usual_loss(t, random))) << t;
  }
}

TEST(SpikeWatch, IsQuietIfTheLossIsConstant) {
  SpikeWatch watch;
  Random random(1);
  for (int64_t t = 0; t < 5000; ++t) EXPECT_FALSE(watch.take(0.001 * (1 + 0.01 * random.normal())));
  SpikeWatch still;
  for (int64_t t = 0; t < 5000; ++t) EXPECT_FALSE(still.take(3));
}

TEST(SpikeWatch, DetectsARiseWithinTwentyUpdates) {
  for (uint64_t seed = 0; seed < 20; ++seed) {
    Random random(seed);
    SpikeWatch watch;
    const auto begin = static_cast<int64_t>(400 + random.below(3000));
    int64_t t = 0;
    while (t < begin) watch.take(usual_loss(t++, random));
    const double mean = watch.mean;
    while (!watch.take(2 * usual_loss(t++, random)) && t < begin + 100) {
    }
    EXPECT_LE(t, begin + 20) << seed;
    EXPECT_NEAR(watch.mean, mean, 0.2 * mean);  // high losses do not change the mean
  }
}

TEST(SpikeWatch, EstimatesMeanAndDeviation) {
  Random random(3);
  SpikeWatch watch;
  EXPECT_TRUE(std::isinf(watch.limit()));
  for (int64_t t = 0; t < 100; ++t) watch.take(10 + random.normal());
  EXPECT_NEAR(watch.mean, 10, 0.4);
  EXPECT_NEAR(watch.variance, 1, 0.4);
  EXPECT_NEAR(watch.limit(), 15, 1.2);
}

}  // namespace
}  // namespace fovea
