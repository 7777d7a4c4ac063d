#include "ops/elementwise.h"

#include "support/gradient_check.h"

namespace fovea {
namespace {

using namespace testing;

const Function kFunctions[] = {Function::tanh, Function::sigmoid,   Function::relu,
                               Function::gelu, Function::gelu_tanh, Function::silu,
                               Function::exp};
const std::vector<Shape> kShapes = {{1, 1}, {3, 7}, {5, 1}, {1, 130}, {4, 33}};

TEST(Elementwise, GradientOfEveryFunction) {
  for (const Function f : kFunctions)
    for (const Shape& shape : kShapes) {
      const Tensor x = random_input(shape, 1);
      if (shape.elements() == 1) x.fill(0.8);  // where no function is flat
      expect_gradient({x}, [&] { return apply(f, x); });
    }
}

TEST(Elementwise, GradientWithDropout) {
  for (const auto f : {Function::relu, Function::gelu}) {
    const Tensor x = random_input({4, 150}, 2);
    const Dropout dropout{0.3f, 7, 3, 1};
    expect_gradient({x}, [&] { return apply(f, x, dropout); });
  }
}

TEST(Elementwise, GradientOfGatedActivations) {
  const Dropout dropout{0.3f, 7, 3, 1};
  for (const Function f : kFunctions) {
    const Tensor x = random_input({4, 33}, 2), z = random_input({4, 33}, 3);
    expect_gradient({x, z}, [&] { return gated(f, x, z); });
    expect_gradient({x, z}, [&] { return gated(f, x, z, dropout); });
  }
}

TEST(Elementwise, GatedEqualsItsParts) {
  const Dropout dropout{0.3f, 7, 3, 1};
  const Tensor x = random_tensor({5, 131}, 2), z = random_tensor({5, 131}, 3);
  for (const Function f : kFunctions) {
    const Tensor wanted = dropped(apply(f, x) * z, dropout);
    EXPECT_LE(nmse(gated(f, x, z, dropout), wanted), 1e-24);
    EXPECT_LE(nmse(gated(f, in_float(x), in_float(z), dropout), wanted), 1e-10);
  }
}

// x (1 + tanh(√(2/π) (x + 0.044715 x³))) / 2: Hendrycks and Gimpel 2016, section 2.
TEST(Elementwise, GeluByTanhApproximatesGelu) {
  const std::vector<double> points{-3, -1, -0.5, 0, 0.5, 1, 3};
  const Tensor x = Tensor::of({1, 7}, points, ElementType::f64);
  const auto found = apply(Function::gelu_tanh, x).values();
  const auto exact = apply(Function::gelu, x).values();
  for (size_t i = 0; i < points.size(); ++i) {
    const double u =
        std::sqrt(2 / 3.14159265358979323846) * (points[i] + 0.044715 * std::pow(points[i], 3));
    EXPECT_NEAR(found[i], points[i] / 2 * (1 + std::tanh(u)), 1e-15);
    EXPECT_NEAR(found[i], exact[i], 5e-4);
  }
}

TEST(Elementwise, GradientOfResidual) {
  const Tensor x = random_input({4, 33}, 3), f = random_input({4, 33}, 4);
  expect_gradient({x, f}, [&] { return residual(x, f, {0.4f, 1, 2, 3}); });
  expect_gradient({f}, [&] { return dropped(f, {0.4f, 1, 2, 3}); });
}

TEST(Elementwise, GradientOfBroadcasting) {
  const Tensor a = random_input({2, 3, 5}, 5), row = random_input({5}, 6),
               column = random_input({2, 3, 1}, 7), middle = random_input({2, 1, 5}, 8);
  expect_gradient({a, row}, [&] { return a + row; });
  expect_gradient({a, column}, [&] { return a * column; });
  expect_gradient({column, middle}, [&] { return column * middle; });
  expect_gradient({a, middle}, [&] { return middle + a; });
}

TEST(Elementwise, GradientOfScaleAndSum) {
  const Tensor a = random_input({3, 4}, 9);
  expect_gradient({a}, [&] { return a * -1.7; });
  expect_gradient({a}, [&] { return sum(a); });
  expect_gradient({a}, [&] { return a + a * a; });  // one tensor used three times
}

TEST(Elementwise, FloatAgreesWithDouble) {
  for (const Function f : kFunctions)
    for (int64_t n : {1, 2, 3, 17, 64, 101, 1009}) {
      const Tensor x = random_tensor({7, n}, static_cast<uint64_t>(n), ElementType::f64, 3);
      EXPECT_LE(nmse(apply(f, in_float(x)), apply(f, x)), 1e-10);
    }
}

TEST(Elementwise, ExtremesStayFinite) {
  const Tensor x =
      Tensor::of({1, 6}, std::vector<double>{-1e4, -100, 0, 100, 1e4, 1e30}, ElementType::f32);
  for (const auto f :
       {Function::tanh, Function::sigmoid, Function::relu, Function::silu, Function::gelu_tanh})
    for (const double v : apply(f, x).values()) EXPECT_TRUE(std::isfinite(v));
}

}  // namespace
}  // namespace fovea
