#include "ops/cross_entropy.h"

#include <omp.h>

#include "ops/matmul.h"
#include "support/gradient_check.h"

namespace fovea {
namespace {

using namespace testing;

const Tensor kLabels = Tensor::of(std::vector<int32_t>{2, 0, -1, 6, 3});

TEST(CrossEntropy, Gradient) {
  const Tensor z = random_input({5, 7}, 1);
  for (const double smoothing : {0.0, 0.1})
    expect_gradient({z}, [&] { return cross_entropy(z, kLabels, smoothing).loss; });
}

TEST(CrossEntropy, GradientOfOutputLoss) {
  const Tensor x = random_input({5, 4}, 1), W = random_input({7, 4}, 2), b = random_input({7}, 3);
  for (const double smoothing : {0.0, 0.1}) {
    expect_gradient({x, W}, [&] { return output_loss(x, W, {}, kLabels, smoothing).loss; });
    expect_gradient({x, W, b}, [&] { return output_loss(x, W, b, kLabels, smoothing).loss; });
  }
}

// Enough rows for several chunks.
TEST(CrossEntropy, OutputLossEqualsItsReference) {
  const int64_t N = 5000, V = 5, D = 3;
  std::vector<int32_t> labels;
  for (int64_t i = 0; i < N; ++i) labels.push_back(static_cast<int32_t>(i % 6) - 1);
  const Tensor y = Tensor::of(labels);
  for (const ElementType type : {ElementType::f64, ElementType::f32}) {
    std::vector<Tensor> gradients;
    std::vector<double> losses;
    for (const bool fused : {true, false}) {
      const Tensor x = random_tensor({N, D}, 1, type), W = random_tensor({V, D}, 2, type);
      x.track();
      W.track();
      Tape tape;
      const CrossEntropy c =
          fused ? output_loss(x, W, {}, y, 0.1) : output_loss_reference(x, W, {}, y, 0.1);
      losses.push_back(c.loss.values()[0]);
      tape.backward(c.loss, 0.5);
      gradients.push_back(x.grad());
      gradients.push_back(W.grad());
    }
    const double bound = type == ElementType::f64 ? 1e-20 : 1e-10;
    EXPECT_NEAR(losses[0], losses[1], 1e-5 * losses[1]);
    EXPECT_LE(nmse(gradients[0], gradients[2]), bound);
    EXPECT_LE(nmse(gradients[1], gradients[3]), bound);
  }
}

// Losses and gradients of an output layer with 59 words.
std::vector<Tensor> all_of_output_loss(int32_t rows, ElementType type) {
  std::vector<int32_t> labels;
  for (int32_t i = 0; i < rows; ++i) labels.push_back(i % 60 - 1);
  const Tensor x = random_tensor({rows, 24}, 1, type);
  const Tensor W = random_tensor({59, 24}, 2, type), b = random_tensor({59}, 3, type);
  for (const Tensor& t : {x, W, b}) t.track();
  Tape tape;
  const CrossEntropy c = output_loss(x, W, b, Tensor::of(labels), 0.1);
  tape.backward(c.loss);
  return {c.loss, c.log_likelihood, x.grad(), W.grad(), b.grad()};
}

TEST(CrossEntropy, OutputLossDoesNotDependOnTheChunks) {
  const std::vector<Tensor> whole = all_of_output_loss(301, ElementType::f64);
  const LogitsScope few(1);  // 64 rows at a time
  const std::vector<Tensor> parts = all_of_output_loss(301, ElementType::f64);
  for (size_t i = 0; i < whole.size(); ++i) EXPECT_LE(nmse(parts[i], whole[i]), 1e-28) << i;
}

TEST(CrossEntropy, OutputLossDoesNotDependOnThreads) {
  const int threads = omp_get_max_threads();
  std::vector<std::vector<double>> found;
  for (const int n : {1, 2, 3}) {
    omp_set_num_threads(n);
    for (const Tensor& t : all_of_output_loss(1301, ElementType::f32)) found.push_back(t.values());
  }
  omp_set_num_threads(threads);
  for (size_t i = 5; i < found.size(); ++i) EXPECT_EQ(found[i], found[i % 5]) << i;
}

TEST(CrossEntropy, LikelihoodIsLogSoftmax) {
  const Tensor z = Tensor::of({1, 2}, std::vector<double>{0, std::log(3.0)}, ElementType::f64);
  const auto found = cross_entropy(z, Tensor::of(std::vector<int32_t>{1}), 0.5);
  EXPECT_NEAR(found.log_likelihood.values()[0], std::log(0.75), 1e-12);
  EXPECT_NEAR(found.loss.values()[0], -0.75 * std::log(0.75) - 0.25 * std::log(0.25), 1e-12);
}

TEST(CrossEntropy, ExtremeLogitsStayFinite) {
  const Tensor z =
      Tensor::of({2, 3}, std::vector<double>{1e4, -1e4, 0, -1e4, 1e4, 0}, ElementType::f32);
  const auto found = cross_entropy(z, Tensor::of(std::vector<int32_t>{1, 1}), 0.1);
  EXPECT_TRUE(std::isfinite(found.loss.values()[0]));
}

TEST(CrossEntropy, Bf16GradientIsClose) {
  const Tensor x = random_tensor({40, 32}, 1, ElementType::f32),
               W = random_tensor({50, 32}, 2, ElementType::f32);
  const Tensor bias = random_tensor({50}, 3, ElementType::f32);
  std::vector<int32_t> labels(40, 7);
  std::vector<Tensor> gradients;
  for (const Precision precision : {Precision::f32, Precision::bf16}) {
    const PrecisionScope scope(precision);
    const Tensor input = in_float(x), b = in_float(bias);
    input.track();
    b.track();
    Tape tape;
    tape.backward(output_loss(input, W, b, Tensor::of(labels), 0.1).loss);
    gradients.push_back(input.grad());
    gradients.push_back(b.grad());
  }
  EXPECT_LE(std::sqrt(nmse(gradients[2], gradients[0])), 1.6e-2);
  EXPECT_LE(std::sqrt(nmse(gradients[3], gradients[1])), 1.6e-2);
}

}  // namespace
}  // namespace fovea
