#include <cmath>

#include "parity/judge.h"

namespace fovea::parity {
namespace {

constexpr size_t kNumbers = 5000;

std::vector<double> numbers(uint64_t seed, double scale) {
  Random random(seed);
  std::vector<double> all(kNumbers);
  for (double& v : all) v = scale * random.normal();
  return all;
}

// The verdict on numbers that `spoil` has changed, if roundings change them by `noise`.
using Noise = std::function<double(uint64_t draw)>;
Verdict verdict(const Noise& noise, const std::function<void(std::vector<double>&)>& spoil,
                Bar bar = Bar::products) {
  using Kind = Trial::Result::Kind;
  const Results expected{{"dx", Kind::gradient, numbers(1, 1)}};
  const auto changed = [&](uint64_t seed, double by) {
    Results results = expected;
    const std::vector<double> off = numbers(seed, by);
    for (size_t i = 0; i < kNumbers; ++i) results[0].values[i] += off[i];
    return results;
  };
  Reference reference(expected, [&](uint64_t draw) { return changed(100 + draw, noise(draw)); });
  Results found = changed(2, 0.003);  // as products in bf16
  spoil(found[0].values);
  return judge(found[0], 0, reference, limit_of(bar, Precision::bf16)).verdict;
}

Verdict verdict(double noise, const std::function<void(std::vector<double>&)>& spoil,
                Bar bar = Bar::products) {
  return verdict([noise](uint64_t) { return noise; }, spoil, bar);
}

void with_noise(std::vector<double>& x, double by) {
  const std::vector<double> off = numbers(3, by);
  for (size_t i = 0; i < kNumbers; ++i) x[i] += off[i];
}

TEST(Parity, Judgement) {
  using Numbers = std::vector<double>;
  EXPECT_EQ(verdict(0.01, [](Numbers&) {}), Verdict::by_itself);
  EXPECT_EQ(verdict(0.01, [](Numbers& x) { with_noise(x, 0.02); }), Verdict::by_rounding);
  EXPECT_EQ(verdict(0.01, [](Numbers& x) { with_noise(x, 0.04); }), Verdict::wrong);
  // There is a limit even if rounding has a large effect.
  EXPECT_EQ(verdict(0.8, [](Numbers& x) { with_noise(x, 0.3); }), Verdict::by_rounding);
  EXPECT_EQ(verdict(0.8, [](Numbers& x) { with_noise(x, 0.45); }), Verdict::wrong);
  EXPECT_EQ(verdict(
                0.8, [](Numbers& x) { with_noise(x, 0.45); }, Bar::rough),
            Verdict::by_rounding);
  // Errors that the mean of 5,000 squares does not show.
  EXPECT_EQ(verdict(0.01, [](Numbers& x) { x[77] += 1; }), Verdict::wrong);
  EXPECT_EQ(verdict(0.01, [](Numbers& x) { x[77] = NAN; }), Verdict::wrong);
  EXPECT_EQ(verdict(0.01,
                    [](Numbers& x) {
                      for (double& v : x) v *= 1.01;
                    }),
            Verdict::wrong);
}

// A few roundings have a large effect.
TEST(Parity, JudgementOfJumps) {
  const auto off_by = [](double by) { return [by](std::vector<double>& x) { with_noise(x, by); }; };
  const auto one_does = [](double much) {
    return [much](uint64_t draw) { return draw == 40 ? much : 0.001; };
  };
  constexpr double kMuch = 1e7;  // larger than any error of a single number
  EXPECT_EQ(verdict(one_does(kMuch), off_by(0.9), Bar::rough), Verdict::by_jump);
  EXPECT_EQ(verdict(one_does(0.5), off_by(0.9), Bar::rough), Verdict::wrong);
  EXPECT_EQ(verdict(one_does(kMuch), off_by(1.8), Bar::rough), Verdict::wrong);
  EXPECT_EQ(verdict(one_does(kMuch), off_by(0.3)), Verdict::wrong);
}

}  // namespace
}  // namespace fovea::parity
