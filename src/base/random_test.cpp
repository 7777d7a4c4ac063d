#include "base/random.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <numeric>
#include <vector>

namespace fovea {
namespace {

constexpr bool equal(PhiloxCounter a, PhiloxCounter b) {
  return a.v[0] == b.v[0] && a.v[1] == b.v[1] && a.v[2] == b.v[2] && a.v[3] == b.v[3];
}

// The known answers of Random123 (kat_vectors, philox4x32 10).
static_assert(equal(philox({{0, 0, 0, 0}}, {{0, 0}}),
                    {{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}}));
static_assert(equal(philox({{~0u, ~0u, ~0u, ~0u}}, {{~0u, ~0u}}),
                    {{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}}));
static_assert(equal(philox({{0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}},
                           {{0xa4093822, 0x299f31d0}}),
                    {{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}}));

TEST(Random, GivesFixedNumbersForASeedAndStream) {
  Random random(42, 7);
  EXPECT_EQ(random.bits32(), philox({{0, 0, 7, 0}}, {{42, 0}}).v[0]);
  double sum = 0;
  for (int i = 0; i < 1000; ++i) sum += random.normal();
  // An exact comparison: all platforms must agree.
  EXPECT_EQ(sum, 0x1.593a454ebebd6p+3) << std::hexfloat << sum;
}

TEST(Random, StreamsDiffer) {
  EXPECT_NE(Random(1, 0).bits64(), Random(1, 1).bits64());
  EXPECT_NE(Random(1, 0).bits64(), Random(2, 0).bits64());
  EXPECT_NE(Random(uint64_t{1} << 32, 0).bits64(), Random(0, 0).bits64());
}

TEST(Random, SeeksToAnyPosition) {
  Random a(3);
  for (int skip = 0; skip < 9; ++skip) {
    Random b(3);
    b.seek(a.position());
    Random copy = a;
    for (int i = 0; i < 9; ++i) EXPECT_EQ(b.bits32(), copy.bits32());
    a.bits32();
  }
}

TEST(Random, BelowHasNoBias) {
  Random random(5);
  std::array<int, 6> counts{};
  for (int i = 0; i < 60'000; ++i) ++counts[random.below(6)];
  double chi2 = 0;
  for (int c : counts) chi2 += (c - 1e4) * (c - 1e4) / 1e4;
  EXPECT_LT(chi2, 20.5);  // 5 degrees of freedom, 0.1 %
  for (int i = 0; i < 100; ++i) EXPECT_EQ(random.below(1), 0u);
  // With n just over 2^63 a plain modulus would return the lower half twice as often.
  const uint64_t n = (uint64_t{1} << 63) + 1;
  int low = 0;
  for (int i = 0; i < 10'000; ++i) low += random.below(n) < n / 2;
  EXPECT_NEAR(low, 5000, 250);
}

TEST(Random, NormalHasTheExpectedMoments) {
  Random random(6);
  const int n = 400'000;
  double m1 = 0, m2 = 0, m3 = 0, m4 = 0;
  int tail = 0;
  for (int i = 0; i < n; ++i) {
    const double x = random.normal();
    m1 += x / n, m2 += x * x / n, m3 += x * x * x / n, m4 += x * x * x * x / n;
    tail += std::abs(x) > 3;
  }
  EXPECT_NEAR(m1, 0, 0.008);
  EXPECT_NEAR(m2, 1, 0.012);
  EXPECT_NEAR(m3, 0, 0.03);
  EXPECT_NEAR(m4, 3, 0.08);
  EXPECT_NEAR(tail, n * 0.0026998, 5 * std::sqrt(n * 0.0027));
}

TEST(Random, UniformFillsTheInterval) {
  Random random(7);
  double least = 1, most = 0, sum = 0;
  for (int i = 0; i < 100'000; ++i) {
    const double x = random.uniform();
    least = std::min(least, x), most = std::max(most, x), sum += x;
  }
  EXPECT_GE(least, 0);
  EXPECT_LT(least, 1e-3);
  EXPECT_LT(most, 1);
  EXPECT_GT(most, 1 - 1e-3);
  EXPECT_NEAR(sum / 1e5, 0.5, 0.005);
}

TEST(Random, ShuffleGivesEveryOrderEqually) {
  Random random(8);
  std::array<int, 27> counts{};
  for (int i = 0; i < 60'000; ++i) {
    std::vector<int> order = {0, 1, 2};
    random.shuffle(order);
    ++counts[static_cast<size_t>(9 * order[0] + 3 * order[1] + order[2])];
  }
  int orders = 0;
  for (int c : counts)
    if (c > 0) {
      ++orders;
      EXPECT_NEAR(c, 10'000, 500);
    }
  EXPECT_EQ(orders, 6);
}

}  // namespace
}  // namespace fovea
