#include "ops/elementwise.h"

#include "support/gradient_check.h"

namespace fovea {
namespace {

using namespace testing;

const std::vector<Shape> kShapes = {{1, 1}, {3, 7}, {5, 1}, {1, 130}, {4, 33}};

TEST(Elementwise, GradientOfEveryFunction) {
  for (const auto f : {Function::tanh, Function::sigmoid, Function::relu, Function::gelu,
                       Function::silu, Function::exp})
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
  for (const auto f : {Function::tanh, Function::sigmoid, Function::relu, Function::gelu,
                       Function::silu, Function::exp})
    for (int64_t n : {1, 2, 3, 17, 64, 101, 1009}) {
      const Tensor x = random_tensor({7, n}, static_cast<uint64_t>(n), ElementType::f64, 3);
      EXPECT_LE(nmse(apply(f, in_float(x)), apply(f, x)), 1e-10);
    }
}

TEST(Elementwise, ExtremesStayFinite) {
  const Tensor x =
      Tensor::of({1, 6}, std::vector<double>{-1e4, -100, 0, 100, 1e4, 1e30}, ElementType::f32);
  for (const auto f : {Function::tanh, Function::sigmoid, Function::relu, Function::silu})
    for (const double v : apply(f, x).values()) EXPECT_TRUE(std::isfinite(v));
}

}  // namespace
}  // namespace fovea
