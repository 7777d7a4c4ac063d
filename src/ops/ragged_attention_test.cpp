#include "ops/ragged_attention.h"

#include <omp.h>

#include "ops/elementwise.h"
#include "support/gradient_check.h"

namespace fovea {
namespace {

using namespace testing;

Tensor integers(const std::vector<int32_t>& values) { return Tensor::of(values); }

// The queries and the inputs of the operations.
struct Example {
  RaggedQueries ragged;
  Tensor q, keys, v, alpha, h;

  Example(const std::vector<int32_t>& offsets, const std::vector<int32_t>& sentence, int64_t A = 5)
      : ragged{SentenceOffsets::of(offsets), integers(sentence)} {
    const int64_t queries = ragged.queries(), words = ragged.memory.tokens;
    q = random_input({queries, A}, 1), keys = random_input({words, A}, 2);
    v = random_input({A}, 3);
    alpha = random_input({queries, ragged.columns()}, 4), h = random_input({words, A + 2}, 5);
  }
};

// Ragged sentences, one of length 1, with queries out of order: two attend to the same sentence,
// and no query attends to one of the sentences. Then one sentence of one word; one sentence of
// several words; and, with widths 1 and 33, all steps of a batch at once.
std::vector<Example> examples() {
  return {Example({0, 3, 4, 9, 11}, {2, 0, 2, 1}), Example({0, 1}, {0}), Example({0, 6}, {0}),
          Example({0, 2, 5}, {0, 0, 0, 1, 1}, 1), Example({0, 4, 5, 9}, {2, 1, 0, 2, 0}, 33)};
}

TEST(RaggedQueries, LengthsOfTheQueriedSentences) {
  EXPECT_EQ(Example({0, 3, 4, 9, 11}, {2, 0, 2, 1}).ragged.lengths().values(),
            (std::vector<double>{5, 3, 5, 1}));
}

TEST(RaggedQueries, GradientOfDotScores) {
  for (const Example& x : examples())
    expect_gradient({x.q, x.keys}, [&] { return dot_scores(x.q, x.keys, x.ragged); });
}

TEST(RaggedQueries, GradientOfAdditiveScores) {
  for (const Example& x : examples()) {
    expect_gradient({x.q, x.keys, x.v},
                    [&] { return additive_scores(x.q, x.keys, x.v, x.ragged); });
    const Tensor keys = random_tensor(x.keys.shape(), 6), v = random_tensor(x.v.shape(), 7);
    expect_gradient({x.q}, [&] { return additive_scores(x.q, keys, v, x.ragged); });
    expect_gradient({x.keys},
                    [&] { return additive_scores(x.q.view(x.q.shape()), x.keys, v, x.ragged); });
  }
}

TEST(RaggedQueries, GradientOfWeightedSum) {
  for (const Example& x : examples())
    expect_gradient({x.alpha, x.h}, [&] { return weighted_sum(x.alpha, x.h, x.ragged); });
}

TEST(RaggedQueries, GradientsOfSeveralStepsAddUp) {
  const Example x({0, 3, 4, 9}, {2, 0});
  const RaggedQueries other{x.ragged.memory, integers({1, 2, 2})};
  const Tensor q = random_input({3, 5}, 9);
  expect_gradient({x.q, q, x.keys, x.v}, [&] {
    return sum(additive_scores(x.q, x.keys, x.v, x.ragged)) +
           sum(additive_scores(q, x.keys, x.v, other)) + sum(dot_scores(q, x.keys, other));
  });
}

TEST(RaggedQueries, GradientOfSoftmaxWithin) {
  const Tensor e = random_input({4, 6}, 1);
  const ColumnRanges ranges{integers({0, 2, 3, 1}), integers({6, 5, 4, 3})};
  expect_gradient({e}, [&] { return softmax_within(e, ranges); });
}

TEST(RaggedQueries, SoftmaxIsZeroOutsideItsRange) {
  const ColumnRanges ranges{integers({0, 2, 3, 6}), integers({6, 5, 3, 6})};
  for (const ElementType type : {ElementType::f32, ElementType::f64}) {
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
std::vector<double> gradient_of(const Tensor& x, const std::function<Tensor()>& f) {
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

TEST(RaggedQueries, FusedOpsAgreeWithPlainOnes) {
  for (const Example& x : examples()) {
    auto fused = [&] { return additive_scores(x.q, x.keys, x.v, x.ragged); };
    auto plain = [&] { return additive_scores_reference(x.q, x.keys, x.v, x.ragged); };
    EXPECT_LE(apart(fused().values(), plain().values()), 1e-14);
    for (const Tensor& input : {x.q, x.keys, x.v})
      EXPECT_LE(apart(gradient_of(input, fused), gradient_of(input, plain)), 1e-13);

    auto sum_fused = [&] { return weighted_sum(x.alpha, x.h, x.ragged); };
    auto sum_plain = [&] { return weighted_sum_reference(x.alpha, x.h, x.ragged); };
    EXPECT_LE(apart(sum_fused().values(), sum_plain().values()), 1e-14);
    for (const Tensor& input : {x.alpha, x.h})
      EXPECT_LE(apart(gradient_of(input, sum_fused), gradient_of(input, sum_plain)), 1e-13);
  }
}

TEST(RaggedQueries, FloatAgreesWithDouble) {
  for (const Example& x : examples()) {
    const Tensor q = in_float(x.q), keys = in_float(x.keys), v = in_float(x.v),
                 alpha = in_float(x.alpha), h = in_float(x.h);
    EXPECT_LE(nmse(dot_scores(q, keys, x.ragged), dot_scores(x.q, x.keys, x.ragged)), 1e-10);
    EXPECT_LE(
        nmse(additive_scores(q, keys, v, x.ragged), additive_scores(x.q, x.keys, x.v, x.ragged)),
        1e-10);
    EXPECT_LE(nmse(weighted_sum(alpha, h, x.ragged), weighted_sum(x.alpha, x.h, x.ragged)), 1e-10);
  }
}

TEST(RaggedQueries, EntriesBeyondTheEndAreNotRead) {
  const Example x({0, 3, 4}, {1, 0});
  auto alpha = x.alpha.values();
  alpha[1] = alpha[2] = NAN;  // row 0 attends to a sentence of one word
  const Tensor with_nan = Tensor::of(x.alpha.shape(), alpha, ElementType::f64);
  EXPECT_EQ(weighted_sum(with_nan, x.h, x.ragged).values(),
            weighted_sum(x.alpha, x.h, x.ragged).values());
}

// Large enough for a parallel region.
TEST(RaggedQueries, DoesNotDependOnThreads) {
  std::vector<int32_t> offsets{0}, sentence;
  for (int32_t b = 0; b < 13; ++b) offsets.push_back(offsets.back() + 1 + b % 5);
  for (int32_t i = 0; i < 40; ++i) sentence.push_back(i * 7 % 13);
  const Example x(offsets, sentence, 150);
  auto all = [&] {
    auto e = [&] { return additive_scores(x.q, x.keys, x.v, x.ragged); };
    auto c = [&] { return weighted_sum(x.alpha, x.h, x.ragged); };
    return std::vector{e().values(),        gradient_of(x.q, e), gradient_of(x.keys, e),
                       gradient_of(x.v, e), c().values(),        gradient_of(x.alpha, c),
                       gradient_of(x.h, c)};
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
