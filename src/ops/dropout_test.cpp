#include "ops/dropout.h"

#include "ops/dropout_mask.h"
#include "ops/elementwise.h"
#include "support/gradient_check.h"

namespace fovea {
namespace {

std::vector<double> mask(const Dropout& dropout, int64_t rows, int64_t cols) {
  return dropped(Tensor::of({rows, cols}, std::vector<double>(rows * cols, 1.0), ElementType::f64),
                 dropout)
      .values();
}

TEST(Dropout, KeepsTheExpectedShareAndTheMean) {
  for (const float rate : {0.1f, 0.3f, 0.5f, 0.9f}) {
    const auto m = mask({rate, 1, 1, 1}, 400, 500);
    double zeros = 0, sum = 0;
    for (const double v : m) {
      zeros += v == 0;
      sum += v;
    }
    const double n = static_cast<double>(m.size()), sigma = std::sqrt(rate * (1 - rate) / n);
    EXPECT_NEAR(zeros / n, rate, 5 * sigma);
    EXPECT_NEAR(sum / n, 1, 5 * sigma / (1 - rate));
  }
}

TEST(Dropout, DependsOnlyOnSeedStepAndOp) {
  const auto base = mask({0.3f, 1, 2, 3}, 10, 130);
  EXPECT_EQ(base, mask({0.3f, 1, 2, 3}, 10, 130));
  EXPECT_NE(base, mask({0.3f, 2, 2, 3}, 10, 130));
  EXPECT_NE(base, mask({0.3f, 1, 3, 3}, 10, 130));
  EXPECT_NE(base, mask({0.3f, 1, 2, 4}, 10, 130));
  const auto fewer = mask({0.3f, 1, 2, 3}, 3, 130);  // a row does not depend on the number of rows
  EXPECT_TRUE(std::equal(fewer.begin(), fewer.end(), base.begin()));
}

TEST(Dropout, IsOffWithoutAScope) {
  EXPECT_FALSE(dropout_key(0.5).on());
  const DropoutScope scope(1, 1);
  const Dropout first = dropout_key(0.5), second = dropout_key(0.5);
  EXPECT_TRUE(first.on());
  EXPECT_NE(first.op, second.op);
  EXPECT_FALSE(dropout_key(0).on());
}

TEST(Dropout, GradientUsesTheSameMask) {
  const Tensor x = testing::random_input({3, 140}, 1);
  testing::expect_gradient({x}, [&] { return dropped(x, {0.5f, 9, 8, 7}); });
}

}  // namespace
}  // namespace fovea
