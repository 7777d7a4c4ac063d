#include "ops/recurrent_linear.h"

#include "ops/elementwise.h"
#include "ops/matmul.h"
#include "ops/shape.h"
#include "support/gradient_check.h"

namespace fovea {
namespace {

using namespace testing;

TEST(RecurrentLinear, Gradient) {
  const Tensor x = random_input({4, 5}, 1), W = random_input({3, 5}, 2), b = random_input({3}, 3);
  expect_gradient({x, W, b}, [&] { return step_linear(x, W, b); });
  expect_gradient({x, W}, [&] { return step_linear(x, W); });
}

TEST(RecurrentLinear, GradientOfInputsAndSummands) {
  const Tensor x = random_input({7, 3}, 1), W = random_input({3, 5}, 2);
  for (const int64_t count : {1, 4}) {
    const Tensor a = random_input({count, 5}, 3);
    expect_gradient({x, a, W}, [&] { return step_linear_onto(x, 2, a, W); });
  }
}

TEST(RecurrentLinear, StepsUseTheirOwnRows) {
  const Tensor x = random_input({5, 3}, 1), W = random_input({3, 3}, 2),
               a = random_input({3, 3}, 3);
  expect_gradient({x, a, W}, [&] {
    const Tensor once = step_linear_onto(x, 0, a, W);
    return step_linear_onto(x, 3, rows(once, 1, 2), W);
  });
}

// Weights of a model in training: packed, changed, packed again.
TEST(RecurrentLinear, ChangedParametersAreReadAgain) {
  const Tensor x = random_tensor({16, 64}, 1, ElementType::f32),
               W = random_tensor({96, 64}, 2, ElementType::f32);
  const Tensor inputs = random_tensor({40, 96}, 3, ElementType::f32);
  W.bind_gradient(Tensor::zeros(W.shape(), ElementType::f32));
  W.mark_parameter();
  for (const Precision precision : {Precision::f32, Precision::bf16}) {
    const PrecisionScope scope(precision);
    for (int change = 0; change < 2; ++change) {
      const Tape tape;
      const Tensor y = linear(x, W);
      EXPECT_LE(nmse(step_linear(x, W), y), 1e-12);
      EXPECT_LE(nmse(step_linear_onto(inputs, 8, x, W), rows(inputs, 8, 16) + y), 1e-12);
      W.assign((W * -0.5).values());
      parameters_changed();
    }
  }
}

}  // namespace
}  // namespace fovea
