#include "ops/softmax.h"

#include "support/gradient_check.h"

namespace fovea {
namespace {

using namespace testing;

TEST(Softmax, Gradient) {
  for (const Shape& shape : {Shape{1, 5}, Shape{4, 7}}) {
    const Tensor x = random_input(shape, 1);
    expect_gradient({x}, [&] { return softmax(x); });
  }
  const Tensor one = random_input({1, 1}, 1);  // always 1: the gradient is 0, also with mutations
  EXPECT_LE(GradientCheck({one}, [&] { return softmax(one); }).error(), 1e-6);
  const Tensor x = random_input({2, 3, 4}, 2);
  const Tensor keep =
      Tensor::of({2, 4}, std::vector<double>{1, 1, 0, 0, 1, 1, 1, 0}, ElementType::f64);
  expect_gradient({x}, [&] { return softmax(x, keep); });
}

TEST(Softmax, RowsSumToOneAndMaskedEntriesAreZero) {
  for (const int64_t n : {1, 2, 17, 1000}) {
    std::vector<double> kept(static_cast<size_t>(n), 1);
    if (n > 1) kept.back() = 0;
    const Tensor keep = Tensor::of({1, n}, kept, ElementType::f32);
    const auto y = softmax(random_tensor({3, n}, 1, ElementType::f32, 5), keep).values();
    for (int64_t i = 0; i < 3; ++i) {
      double sum = 0;
      for (int64_t j = 0; j < n; ++j) sum += y[static_cast<size_t>(i * n + j)];
      EXPECT_NEAR(sum, 1, 1e-6);
      if (n > 1) {
        EXPECT_EQ(y[static_cast<size_t>(i * n + n - 1)], 0);
      }
    }
  }
}

TEST(Softmax, ExtremesAndEmptyRows) {
  const Tensor x = Tensor::of({2, 3}, std::vector<double>{1e4, -1e4, 0, 1, 2, 3}, ElementType::f32);
  const Tensor none = Tensor::of({2, 3}, std::vector<double>{1, 1, 1, 0, 0, 0}, ElementType::f32);
  const auto y = softmax(x, none).values();
  EXPECT_NEAR(y[0], 1, 1e-6);
  for (int i = 3; i < 6; ++i) EXPECT_EQ(y[static_cast<size_t>(i)], 0);
}

TEST(Softmax, FloatAgreesWithDouble) {
  for (const int64_t n : {1, 3, 31, 64, 1009}) {
    const Tensor x = random_tensor({5, n}, 1, ElementType::f64, 3);
    EXPECT_LE(nmse(softmax(in_float(x)), softmax(x)), 1e-10);
  }
}

}  // namespace
}  // namespace fovea
