#include "ops/matmul.h"

#include <omp.h>

#include <array>
#include <bit>
#include <limits>

#include "gemm/gemm_kernel.h"
#include "ops/shape.h"
#include "support/gradient_check.h"

namespace fovea {
namespace {

using namespace testing;

TEST(Matmul, Gradient) {
  for (const auto& [n, k, m] :
       std::vector<std::array<int64_t, 3>>{{1, 1, 1}, {3, 5, 2}, {7, 1, 4}}) {
    const Tensor a = random_input({n, k}, 1), b = random_input({k, m}, 2);
    expect_gradient({a, b}, [&] { return matmul(a, b); });
    expect_gradient({a}, [&] { return transpose(a); });
  }
  const Tensor a = random_input({2, 3, 4}, 3), b = random_input({2, 4, 5}, 4),
               shared = random_input({4, 5}, 5);
  expect_gradient({a, b}, [&] { return matmul(a, b); });
  expect_gradient({a, shared}, [&] { return matmul(a, shared); });
}

TEST(Matmul, GradientOfLinear) {
  for (const int64_t rows : {1, 3, 11}) {
    const Tensor x = random_input({rows, 6}, 1), W = random_input({4, 6}, 2),
                 b = random_input({4}, 3);
    expect_gradient({x, W, b}, [&] { return linear(x, W, b); });
    expect_gradient({x, W}, [&] { return linear(x, W); });
  }
}

// Float products and their gradients against double, on shapes with odd sizes and primes.
TEST(Matmul, FloatAgreesWithDouble) {
  for (const int64_t n : {1, 2, 13, 64})
    for (const int64_t k : {1, 3, 31, 128})
      for (const int64_t m : {1, 5, 61, 97}) {
        const Tensor x = random_input({n, k}, 1), W = random_input({m, k}, 2);
        const Tensor fx = in_float(x), fW = in_float(W);
        fx.track();
        fW.track();
        const Tensor seed = random_tensor({n, m}, 3);
        {
          Tape tape;
          tape.backward(linear(x, W), seed);
        }
        {
          Tape tape;
          const Tensor fy = linear(fx, fW);
          EXPECT_LE(nmse(fy, linear(x, W)), 1e-7);
          tape.backward(fy, in_float(seed));
        }
        EXPECT_LE(nmse(fx.grad(), x.grad()), 1e-7);
        EXPECT_LE(nmse(fW.grad(), W.grad()), 1e-7);
      }
}

TEST(Matmul, Bf16IsCloseToDouble) {
  const PrecisionScope scope(Precision::bf16);
  for (const int64_t n : {1, 7, 130}) {
    const Tensor x = random_tensor({n, 96}, 1), W = random_tensor({33, 96}, 2);
    EXPECT_LE(std::sqrt(nmse(linear(in_float(x), in_float(W)), linear(x, W))), 1.6e-2);
  }
}

// −1, 0 and 1: all sums of their products are exact.
std::vector<bf16> signs(int64_t n, uint64_t seed) {
  std::vector<bf16> bits;
  for (const double v : random_tensor({n}, seed).values())
    bits.push_back(to_bf16(static_cast<float>(std::clamp(std::round(2 * v), -1.0, 1.0))));
  return bits;
}

struct Bf16Factors {
  int64_t m, n, k;
  kernel::Transposition a_side, b_side;
  std::vector<bf16> a = signs(m * k, 1), b = signs(k * n, 2);

  kernel::GemmCall<float, bf16> product() const {
    kernel::GemmCall<float, bf16> p;
    p.a = a_side == kernel::Transposition::as_is ? Matrix<const bf16>{a.data(), m, k}
                                                 : Matrix<const bf16>{a.data(), k, m};
    p.b = b_side == kernel::Transposition::as_is ? Matrix<const bf16>{b.data(), k, n}
                                                 : Matrix<const bf16>{b.data(), n, k};
    p.a_side = a_side, p.b_side = b_side;
    return p;
  }

  std::vector<float> sums() const {
    const auto number = [](const std::vector<bf16>& from, int64_t at) {
      return std::bit_cast<float>(uint32_t{from[static_cast<size_t>(at)].bits} << 16);
    };
    std::vector<float> all;
    for (int64_t i = 0; i < m; ++i)
      for (int64_t j = 0; j < n; ++j) {
        float sum = 0;
        for (int64_t l = 0; l < k; ++l)
          sum += number(a, a_side == kernel::Transposition::as_is ? i * k + l : l * m + i) *
                 number(b, b_side == kernel::Transposition::as_is ? l * n + j : j * k + l);
        all.push_back(sum);
      }
    return all;
  }
};

// Compares all forms of a product, with the current number of threads.
void expect_exact(const Bf16Factors& factors, int threads) {
  const std::vector<float> sums = factors.sums();
  const std::vector<float> bias(static_cast<size_t>(factors.n), 3.0f);
  for (const bool with_bias : {false, true})
    for (const bool kept : {false, true})
      for (const OutputMode fold : {OutputMode::set, OutputMode::add}) {
        std::vector<float> c(sums.size(), 5.0f), expected = sums;
        kernel::GemmCall<float, bf16> p = factors.product();
        p.c = {c.data(), factors.m, factors.n};
        p.bias = with_bias ? bias.data() : nullptr, p.fold = fold, p.keep_b = kept;
        kernel::matmul(Cpu{}, p);
        for (float& sum : expected)
          sum += (with_bias ? 3.0f : 0) + (fold == OutputMode::add ? 5.0f : 0);
        EXPECT_EQ(c, expected) << factors.m << " × " << factors.k << " × " << factors.n
                               << (with_bias ? ", bias" : "") << (kept ? ", kept" : "")
                               << (fold == OutputMode::add ? ", added" : "") << ", threads "
                               << threads;
      }
  kernel::forget_packed(Cpu{});
}

// Sizes with a remainder after whole tiles of rows, columns and depth (Note [Tiles]), with each
// operand as is and transposed.
TEST(Matmul, Bf16SumsAreExact) {
  using kernel::Transposition;
  if (!kernel::has_fast_bf16(Cpu{})) GTEST_SKIP() << "this processor has no fast bf16 products";
  const std::vector<std::array<int64_t, 3>> sizes = {{1, 1, 1},      {32, 32, 64},  {33, 47, 31},
                                                     {5, 100, 33},   {520, 40, 66}, {17, 16, 4130},
                                                     {40, 330, 2080}};
  const int most = omp_get_max_threads();
  int threads = 0;
  for (const auto& [m, n, k] : sizes)
    for (const Transposition a : {Transposition::as_is, Transposition::transposed})
      for (const Transposition b : {Transposition::as_is, Transposition::transposed}) {
        threads = threads % 3 + 1;
        omp_set_num_threads(threads);
        expect_exact({m, n, k, a, b}, threads);
      }
  omp_set_num_threads(most);
}

TEST(Matmul, Int8IsCloseToDouble) {
  const PrecisionScope scope(Precision::int8);
  for (const int64_t n : {1, 7, 130}) {
    const Tensor x = random_tensor({n, 96}, 1), W = random_tensor({33, 96}, 2), fW = in_float(W);
    fW.mark_parameter();
    const double error = nmse(linear(in_float(x), fW), linear(x, W));
    EXPECT_LE(error, 5e-4);
    EXPECT_GT(error, 1e-8) << "too small an error for 8 bits";
    parameters_changed();
  }
}

// Operands of −1, 0 and 1 are exact in 8 bits, so only sums could be wrong. The cases have a
// remainder after whole tiles, any number of threads, and (without 0) products that are all as
// large as possible, where the sum of two would overflow 16 bits.
TEST(Matmul, Int8SumsAreExact) {
  const PrecisionScope scope(Precision::int8);
  const int threads = omp_get_max_threads();
  std::vector<std::array<int64_t, 3>> sizes{
      {1, 600, 33}, {7, 97, 64}, {150, 600, 40}, {33, 97, 130}, {150, 600, 200}};
  for (int64_t rows = 1; rows <= 13; ++rows) sizes.push_back({rows, 5 * rows * rows, 64 + rows});
  for (const auto& [rows, out, in] : sizes)
    for (const double least : {-1.0, 1.0}) {
      const auto signs = [&](Shape shape, uint64_t seed) {
        std::vector<double> values = random_tensor(shape, seed).values();
        for (double& v : values) v = std::clamp(std::round(2 * v), least, 1.0);
        return Tensor::of(std::move(shape), values, ElementType::f64);
      };
      const Tensor x = signs({rows, in}, 1), W = signs({out, in}, 2), b = random_tensor({out}, 3);
      const Tensor fx = in_float(x), fW = in_float(W), fb = in_float(b);
      fW.mark_parameter();
      for (const int n : {1, 2, 3}) {
        omp_set_num_threads(n);
        EXPECT_LE(nmse(linear(fx, fW, fb), linear(x, W, b)), 1e-12) << rows << ", threads " << n;
        EXPECT_LE(nmse(linear(fx, fW), linear(x, W)), 1e-12) << rows << ", threads " << n;
      }
      omp_set_num_threads(threads);
      parameters_changed();
    }
}

TEST(Matmul, Int8PropagatesNaNAndInfinity) {
  const PrecisionScope scope(Precision::int8);
  const Tensor W = random_tensor({20, 16}, 2, ElementType::f32),
               x = random_tensor({2, 16}, 1, ElementType::f32);
  W.mark_parameter();
  for (const float bad : {std::numeric_limits<float>::quiet_NaN(), HUGE_VALF}) {
    x.data<float>()[3] = bad;
    const auto y = linear(x, W).values();
    EXPECT_TRUE(std::none_of(y.begin(), y.begin() + 20, [](double v) { return std::isfinite(v); }));
    EXPECT_TRUE(std::all_of(y.begin() + 20, y.end(), [](double v) { return std::isfinite(v); }));
  }
}

// A row of the result depends only on the same row of the input, not on the batch or the threads.
// For floats this holds in tiles and if oneDNN has its AVX-512 kernels; for int8 it always holds.
void expect_independent_rows(int64_t columns, int64_t depth) {
  const Tensor W = random_tensor({columns, depth}, 2, ElementType::f32);
  W.mark_parameter();
  const Tensor x = random_tensor({70, depth}, 1, ElementType::f32);
  const int threads = omp_get_max_threads();
  for (const Precision precision : {Precision::f32, Precision::bf16, Precision::int8}) {
    if (precision != Precision::int8 && !__builtin_cpu_supports("avx512f")) continue;
    const PrecisionScope scope(precision);
    const auto all = linear(x, W).values();
    for (const int64_t n : {1, 2, 3, 16, 33}) {
      omp_set_num_threads(n % 2 ? 1 : threads);
      const auto part = linear(x.window(5, n), W).values();
      EXPECT_TRUE(std::equal(part.begin(), part.end(), all.begin() + 5 * columns))
          << n << " rows, depth " << depth << ", " << columns << " columns";
    }
    omp_set_num_threads(threads);
    parameters_changed();
  }
}

TEST(Matmul, RowsDoNotDependOnTheBatch) {
  expect_independent_rows(97, 128);
  expect_independent_rows(64, 1200);
  expect_independent_rows(512, 2048);
}

// Prepared products are cached by their shapes. A product that was prepared for all threads must be
// complete in one of several concurrent threads, and vice versa.
TEST(Matmul, ConcurrentThreadsMultiplyCompletely) {
  for (const Precision precision : {Precision::f32, Precision::bf16, Precision::int8})
    for (const int64_t cols : {30, 2000})
      for (const int64_t rows : {1, 16, 300}) {
        const PrecisionScope scope(precision);
        const Tensor W = random_tensor({600, cols}, 2, ElementType::f32);
        W.mark_parameter();
        const Tensor x = random_tensor({rows, cols}, 1, ElementType::f32), before = linear(x, W);
        parameters_changed();
        std::vector<Tensor> after(4);
#pragma omp parallel for num_threads(2) schedule(static, 1)
        for (Tensor& y : after) {
          const PrecisionScope own(precision);
          y = linear(x, W);
        }
        after.push_back(linear(x, W));
        for (const Tensor& y : after)
          EXPECT_LE(nmse(y, before), 1e-12)
              << rows << ", precision " << static_cast<int>(precision);
        parameters_changed();
      }
}

// Products of many rows are split in halves (Note [Halves]), with any number of threads.
TEST(Matmul, ManyRowsDoNotDependOnThreads) {
  const int threads = omp_get_max_threads();
  for (const Precision precision : {Precision::f32, Precision::bf16})
    for (const int64_t rows : {511, 512, 1301}) {
      const PrecisionScope scope(precision);
      const Tensor exact_x = random_tensor({rows, 40}, 1), exact_W = random_tensor({33, 40}, 2);
      const Tensor exact_d = random_tensor({rows, 33}, 3);
      std::vector<std::vector<Tensor>> found;
      for (const int n : {0, 1, 2, 3}) {  // 0: in double
        omp_set_num_threads(std::max(n, 1));
        const auto in = [&](const Tensor& x) { return n ? in_float(x) : x; };
        const Tensor x = in(exact_x), W = in(exact_W), d = in(exact_d);
        x.track();
        W.track();
        Tape tape;
        const Tensor y = linear(x, W);
        tape.backward(y, d);
        found.push_back({y, x.grad(), W.grad()});
      }
      omp_set_num_threads(threads);
      for (size_t i = 0; i < 3; ++i) {
        EXPECT_LE(std::sqrt(nmse(found[1][i], found[0][i])), 1.6e-2) << i;
        for (const size_t n : {2, 3})
          EXPECT_EQ(found[n][i].values(), found[1][i].values()) << i << ", threads " << n;
      }
    }
}

// In 9,000 rows in small parts, some are multiplied during the backward pass and the rest at its
// end (Note [Late weight gradients]). In one part they are not deferred.
TEST(Matmul, LateWeightGradientsAreComplete) {
  constexpr int64_t kParts = 18, kRows = 500;
  const Tensor x = random_tensor({kParts * kRows, 5}, 1), d = random_tensor({kParts * kRows, 3}, 2);
  std::vector<Tensor> gradients;
  for (const int64_t rows : {kParts * kRows, kRows}) {
    const Tensor W = random_tensor({3, 5}, 3);
    W.bind_gradient(Tensor::zeros(W.shape(), W.type()));
    W.mark_parameter();
    Tape tape;
    std::vector<Tensor> y;
    for (int64_t at = 0; at < x.rows(); at += rows) y.push_back(linear(x.window(at, rows), W));
    tape.backward(concat_rows(y), d);
    gradients.push_back(W.grad());
  }
  EXPECT_LE(nmse(gradients[1], gradients[0]), 1e-20);
}

TEST(Matmul, ParametersAreConvertedAgainAfterTheyChange) {
  for (const Precision precision : {Precision::f32, Precision::bf16, Precision::int8}) {
    const PrecisionScope scope(precision);
    const Tensor W = random_tensor({16, 16}, 2, ElementType::f32),
                 x = random_tensor({3, 16}, 1, ElementType::f32);
    W.mark_parameter();
    const auto before = linear(x, W).values();
    W.fill(0);
    parameters_changed();
    for (const double v : linear(x, W).values()) EXPECT_EQ(v, 0);
    EXPECT_NE(before, linear(x, W).values());
  }
}

}  // namespace
}  // namespace fovea
