#include "ops/norm.h"

#include "support/gradient_check.h"

namespace fovea {
namespace {

using namespace testing;

TEST(Norm, Gradient) {
  for (const Shape& shape : {Shape{1, 2}, Shape{3, 7}, Shape{300, 4}}) {
    const Tensor x = random_input(shape, 1), g = random_input({shape.back()}, 2),
                 b = random_input({shape.back()}, 3);
    if (shape[0] < 100) expect_gradient({x, g, b}, [&] { return layer_norm(x, g, b); });
    if (shape[0] < 100) expect_gradient({x, g}, [&] { return rms_norm(x, g, 1e-6); });
  }
}

TEST(Norm, GradientOfResidualNorm) {
  const Tensor x = random_input({4, 9}, 1), f = random_input({4, 9}, 2), g = random_input({9}, 3),
               b = random_input({9}, 4);
  const Dropout dropout{0.3f, 1, 2, 3};
  expect_gradient({x, f, g, b}, [&] { return residual_norm(x, f, {}, g, b); });
  expect_gradient({x, f, g, b}, [&] { return residual_norm(x, f, dropout, g, b); });
  expect_gradient({x, f, g}, [&] { return residual_norm(x, f, dropout, g, {}); });
  expect_gradient({f, g, b}, [&] { return residual_norm(x.view(x.shape()), f, dropout, g, b); });
}

TEST(Norm, FusedEqualsItsReference) {
  for (const int64_t rows : {1, 5, 300})
    for (const int64_t cols : {2, 17, 128, 131}) {
      const Tensor x = random_tensor({rows, cols}, 1), f = random_tensor({rows, cols}, 2),
                   g = random_tensor({cols}, 3), b = random_tensor({cols}, 4);
      const Dropout dropout{0.3f, 1, 2, 3};
      const Tensor expected = residual_norm_reference(x, f, dropout, g, b);
      EXPECT_LE(nmse(residual_norm(x, f, dropout, g, b), expected), 1e-24);
      const Tensor found =
          residual_norm(in_float(x), in_float(f), dropout, in_float(g), in_float(b));
      EXPECT_LE(nmse(found, expected), 1e-10);
      const Tensor rms = residual_norm_reference(x, f, dropout, g, {});
      EXPECT_LE(nmse(residual_norm(x, f, dropout, g, {}), rms), 1e-24);
      EXPECT_LE(nmse(residual_norm(in_float(x), in_float(f), dropout, in_float(g), {}), rms),
                1e-10);
    }
}

TEST(Norm, RmsNormHasNoMean) {
  const Tensor x = Tensor::of({1, 2}, std::vector<double>{3, 4}, ElementType::f64);
  const Tensor g = Tensor::of({2}, std::vector<double>{1, -2}, ElementType::f64);
  const double root = std::sqrt(12.5 + 0.25);  // mean(x²) + ε
  const auto y = rms_norm(x, g, 0.25).values();
  EXPECT_NEAR(y[0], 3 / root, 1e-15);
  EXPECT_NEAR(y[1], -8 / root, 1e-15);
}

TEST(Norm, AConstantRowIsNotDividedByZero) {
  const Tensor x = Tensor::of({1, 8}, std::vector<double>(8, 3.0), ElementType::f32);
  const Tensor one = Tensor::of({8}, std::vector<double>(8, 1.0), ElementType::f32);
  for (const double v : layer_norm(x, one, one).values()) EXPECT_EQ(v, 1);
}

}  // namespace
}  // namespace fovea
