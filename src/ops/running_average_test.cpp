#include "ops/running_average.h"

#include "ops/elementwise.h"
#include "support/gradient_check.h"

namespace fovea {
namespace {

using namespace testing;

const SentenceOffsets kSentences = SentenceOffsets::of(std::vector<int32_t>{0, 3, 3, 4, 9});

TEST(RunningAverage, Gradient) {
  const Tensor a = random_input({9, 5}, 1), x = random_input({9, 5}, 2);
  expect_gradient({a, x}, [&] { return running_average(sigmoid(a), x, kSentences); });
  const Tensor constant = random_tensor({9, 5}, 3);  // needs no gradient
  expect_gradient({x}, [&] { return running_average(sigmoid(constant), x, kSentences); });
  expect_gradient({a}, [&] { return running_average(sigmoid(a), constant, kSentences); });
}

TEST(RunningAverage, FusedEqualsItsReference) {
  const Tensor f = sigmoid(random_tensor({9, 70}, 1)), x = random_tensor({9, 70}, 2);
  const Tensor expected = running_average_reference(f, x, kSentences);
  EXPECT_LE(nmse(running_average(f, x, kSentences), expected), 1e-24);
  EXPECT_LE(nmse(running_average(in_float(f), in_float(x), kSentences), expected), 1e-10);
}

// c_1 = (1 − 1/2) 4, c_2 = 1/4 c_1 + 3/4 · 8; the next sentence starts from 0.
TEST(RunningAverage, StartsFromZero) {
  const Tensor f = Tensor::of({3, 1}, std::vector<double>{0.5, 0.25, 0.5}, ElementType::f64);
  const Tensor x = Tensor::of({3, 1}, std::vector<double>{4, 8, 6}, ElementType::f64);
  const SentenceOffsets two = SentenceOffsets::of(std::vector<int32_t>{0, 2, 3});
  EXPECT_EQ(running_average(f, x, two).values(), (std::vector<double>{2, 6.5, 3}));
}

TEST(RunningAverage, StepsEqualTheWhole) {
  const Tensor f = sigmoid(random_tensor({4, 6}, 1)), x = random_tensor({4, 6}, 2);
  const SentenceOffsets one = SentenceOffsets::of(std::vector<int32_t>{0, 4});
  const auto whole = running_average(f, x, one).values();
  const Tensor states = Tensor::zeros({4, 6}, ElementType::f64);
  std::vector<double> steps;
  for (int32_t t = 0; t < 4; ++t) {
    const Tensor c = average_step(f.window(t, 1), x.window(t, 1), states,
                                  Tensor::of(std::vector<int32_t>{t - 1}));
    states.window(t, 1).copy_from(c);
    for (const double v : c.values()) steps.push_back(v);
  }
  for (size_t i = 0; i < whole.size(); ++i) EXPECT_NEAR(steps[i], whole[i], 1e-14);
}

}  // namespace
}  // namespace fovea
