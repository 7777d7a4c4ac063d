#include "ops/lookup.h"

#include <omp.h>

#include "ops/elementwise.h"
#include "support/gradient_check.h"

namespace fovea {
namespace {

using namespace testing;

Tensor integers(const std::vector<int32_t>& values) { return Tensor::of(values); }

// Who looks where, and what the ops are given.
struct Example {
  Lookup look;
  Tensor q, keys, v, alpha, h;

  Example(const std::vector<int32_t>& offsets, const std::vector<int32_t>& sentence, int64_t A = 5)
      : look{Packing::of(offsets), integers(sentence)} {
    const int64_t queries = look.queries(), words = look.memory.tokens;
    q = random_input({queries, A}, 1), keys = random_input({words, A}, 2);
    v = random_input({A}, 3);
    alpha = random_input({queries, look.columns()}, 4), h = random_input({words, A + 2}, 5);
  }
};

// Ragged with a length of 1, queries out of order, two at one sentence, one sentence unseen; one
// sentence of one word; one sentence of several; all steps of a batch at once.
std::vector<Example> examples() {
  return {Example({0, 3, 4, 9, 11}, {2, 0, 2, 1}), Example({0, 1}, {0}), Example({0, 6}, {0}),
          Example({0, 2, 5}, {0, 0, 0, 1, 1}, 1), Example({0, 4, 5, 9}, {2, 1, 0, 2, 0}, 33)};
}

TEST(Lookup, LengthsOfTheSentencesLookedAt) {
  EXPECT_EQ(Example({0, 3, 4, 9, 11}, {2, 0, 2, 1}).look.lengths().values(),
            (std::vector<double>{5, 3, 5, 1}));
}

TEST(Lookup, GradientOfDotScores) {
  for (const Example& x : examples())
    expect_gradient({x.q, x.keys}, [&] { return dot_scores(x.q, x.keys, x.look); });
}

TEST(Lookup, GradientOfAdditiveScores) {
  for (const Example& x : examples()) {
    expect_gradient({x.q, x.keys, x.v}, [&] { return additive_scores(x.q, x.keys, x.v, x.look); });
    const Tensor keys = random_tensor(x.keys.shape(), 6), v = random_tensor(x.v.shape(), 7);
    expect_gradient({x.q}, [&] { return additive_scores(x.q, keys, v, x.look); });
    expect_gradient({x.keys},
                    [&] { return additive_scores(x.q.view(x.q.shape()), x.keys, v, x.look); });
  }
}

TEST(Lookup, GradientOfWeightedSum) {
  for (const Example& x : examples())
    expect_gradient({x.alpha, x.h}, [&] { return weighted_sum(x.alpha, x.h, x.look); });
}

TEST(Lookup, GradientsOfSeveralStepsAddUp) {
  const Example x({0, 3, 4, 9}, {2, 0});
  const Lookup other{x.look.memory, integers({1, 2, 2})};
  const Tensor q = random_input({3, 5}, 9);
  expect_gradient({x.q, q, x.keys, x.v}, [&] {
    return sum(additive_scores(x.q, x.keys, x.v, x.look)) +
           sum(additive_scores(q, x.keys, x.v, other)) + sum(dot_scores(q, x.keys, other));
  });
}

TEST(Lookup, GradientOfSoftmaxWithin) {
  const Tensor e = random_input({4, 6}, 1);
  const Ranges ranges{integers({0, 2, 3, 1}), integers({6, 5, 4, 3})};
  expect_gradient({e}, [&] { return softmax_within(e, ranges); });
}

TEST(Lookup, SoftmaxIsZeroOutsideItsRange) {
  const Ranges ranges{integers({0, 2, 3, 6}), integers({6, 5, 3, 6})};
  for (const Type type : {Type::f32, Type::f64}) {
    const auto y = softmax_within(random_tensor({4, 6}, 1, type, 20), ranges).values();
    for (int64_t i = 0; i < 4; ++i) {
      const int32_t low = ranges.low.data<int32_t>()[i], high = ranges.high.data<int32_t>()[i];
      double sum = 0;
      for (int64_t j = 0; j < 6; ++j) {
        const double at = y[static_cast<size_t>(i * 6 + j)];
        sum += at;
        if (j < low || j >= high) {
          EXPECT_EQ(at, 0);
        }
      }
      EXPECT_NEAR(sum, low < high ? 1 : 0, 1e-6);
    }
  }
}

// The gradient of Σ weight × y at x.
std::vector<double> pulled(const Tensor& x, const std::function<Tensor()>& f) {
  x.slot()->release();
  Tape tape;
  const Tensor y = f();
  tape.backward(y, random_tensor(y.shape(), 77, y.type()));
  return x.grad().values();
}

double apart(const std::vector<double>& a, const std::vector<double>& b) {
  double most = 0;
  for (size_t i = 0; i < a.size(); ++i) most = std::max(most, std::abs(a[i] - b[i]));
  return most;
}

TEST(Lookup, FusedOpsAgreeWithPlainOnes) {
  for (const Example& x : examples()) {
    auto fused = [&] { return additive_scores(x.q, x.keys, x.v, x.look); };
    auto plain = [&] { return additive_scores_reference(x.q, x.keys, x.v, x.look); };
    EXPECT_LE(apart(fused().values(), plain().values()), 1e-14);
    for (const Tensor& input : {x.q, x.keys, x.v})
      EXPECT_LE(apart(pulled(input, fused), pulled(input, plain)), 1e-13);

    auto sum_fused = [&] { return weighted_sum(x.alpha, x.h, x.look); };
    auto sum_plain = [&] { return weighted_sum_reference(x.alpha, x.h, x.look); };
    EXPECT_LE(apart(sum_fused().values(), sum_plain().values()), 1e-14);
    for (const Tensor& input : {x.alpha, x.h})
      EXPECT_LE(apart(pulled(input, sum_fused), pulled(input, sum_plain)), 1e-13);
  }
}

TEST(Lookup, FloatAgreesWithDouble) {
  for (const Example& x : examples()) {
    const Tensor q = in_float(x.q), keys = in_float(x.keys), v = in_float(x.v),
                 alpha = in_float(x.alpha), h = in_float(x.h);
    EXPECT_LE(nmse(dot_scores(q, keys, x.look), dot_scores(x.q, x.keys, x.look)), 1e-10);
    EXPECT_LE(nmse(additive_scores(q, keys, v, x.look), additive_scores(x.q, x.keys, x.v, x.look)),
              1e-10);
    EXPECT_LE(nmse(weighted_sum(alpha, h, x.look), weighted_sum(x.alpha, x.h, x.look)), 1e-10);
  }
}

TEST(Lookup, RubbishBeyondTheEndIsNotRead) {
  const Example x({0, 3, 4}, {1, 0});
  auto alpha = x.alpha.values();
  alpha[1] = alpha[2] = NAN;  // row 0 looks at a sentence of one word
  const Tensor spoilt = Tensor::of(x.alpha.shape(), alpha, Type::f64);
  EXPECT_EQ(weighted_sum(spoilt, x.h, x.look).values(),
            weighted_sum(x.alpha, x.h, x.look).values());
}

// Large enough for a parallel region.
TEST(Lookup, SameBitsWithAnyNumberOfThreads) {
  std::vector<int32_t> offsets{0}, sentence;
  for (int32_t b = 0; b < 13; ++b) offsets.push_back(offsets.back() + 1 + b % 5);
  for (int32_t i = 0; i < 40; ++i) sentence.push_back(i * 7 % 13);
  const Example x(offsets, sentence, 150);
  auto all = [&] {
    auto e = [&] { return additive_scores(x.q, x.keys, x.v, x.look); };
    auto c = [&] { return weighted_sum(x.alpha, x.h, x.look); };
    return std::vector{e().values(), pulled(x.q, e),     pulled(x.keys, e), pulled(x.v, e),
                       c().values(), pulled(x.alpha, c), pulled(x.h, c)};
  };
  const int threads = omp_get_max_threads();
  omp_set_num_threads(1);
  const auto one = all();
  omp_set_num_threads(3);
  EXPECT_EQ(all(), one);
  omp_set_num_threads(threads);
}

}  // namespace
}  // namespace fovea
