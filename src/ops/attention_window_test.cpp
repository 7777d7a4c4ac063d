#include "ops/attention_window.h"

#include "ops/elementwise.h"
#include "support/gradient_check.h"

namespace fovea {
namespace {

using namespace testing;

Tensor integers(const std::vector<int32_t>& values) { return Tensor::of(values); }
Tensor reals(Shape shape, const std::vector<double>& values, ElementType type = ElementType::f64) {
  return Tensor::of(std::move(shape), values, type);
}
Tensor tracked(Shape shape, const std::vector<double>& values) {
  Tensor t = reals(std::move(shape), values);
  t.track();
  return t;
}

using Numbers = std::vector<double>;

// Sentences of 3, 1 and 5 words. The queries are in another order than the sentences.
RaggedQueries example() {
  return {SentenceOffsets::of(std::vector<int32_t>{0, 3, 4, 9}), integers({2, 0, 1, 2})};
}

void expect_ranges(const ColumnRanges& r, const Numbers& low, const Numbers& high) {
  EXPECT_EQ(r.low.values(), low);
  EXPECT_EQ(r.high.values(), high);
}

TEST(AttentionWindow, ColumnRanges) {
  const ColumnRanges all = full_range(example());
  expect_ranges(all, {0, 0, 0, 0}, {5, 3, 1, 5});
  expect_ranges(full_range(example(), 2), {0, 0, 0, 0}, {2, 2, 1, 2});
  // ⌊p + ½⌋ = 3, 0, 1, 5: columns 2, −1, 0, 4 in the middle.
  for (const ElementType type : {ElementType::f32, ElementType::f64}) {
    const Tensor p = reals({4, 1}, {2.5, 0.2, 0.9, 4.9}, type);
    expect_ranges(window_around(p, 1, all), {1, 0, 0, 3}, {4, 1, 1, 5});
    expect_ranges(window_around(p, 9, all), {0, 0, 0, 0}, {5, 3, 1, 5});
  }
  expect_ranges(window_around(reals({4, 1}, {5, 3, 1, 5}), 1, full_range(example(), 2)),
                {3, 1, 0, 3}, {3, 2, 1, 3});  // empty if the window and the range do not overlap
  expect_ranges(range_from(integers({3, 0, 0, 1}), 1, all), {2, 0, 0, 0}, {5, 3, 1, 5});
}

TEST(AttentionWindow, ArgmaxPrefersTheLeftmostOfEqualEntries) {
  const Tensor x = reals({3, 4}, {1, 7, 7, 9, 3, 2, 1, 0, 5, 5, 5, 5});
  const ColumnRanges ranges{integers({0, 1, 2}), integers({3, 4, 2})};
  const Tensor at = argmax(x, ranges);
  EXPECT_EQ(at.values(), (Numbers{1, 1, -1}));
  EXPECT_EQ(one_hot(at, x).values(), (Numbers{0, 1, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0}));
}

TEST(AttentionWindow, DrawsFollowTheDistribution) {
  constexpr int64_t rows = 20000;
  const Numbers p = {0, 0.5, 0, 0.2, 0.3, 0};
  Numbers values;
  for (int64_t i = 0; i < rows; ++i) values.insert(values.end(), p.begin(), p.end());
  const std::vector<int32_t> low(rows, 0), high(rows, 5);
  const ColumnRanges ranges{integers(low), integers(high)};
  for (const ElementType type : {ElementType::f32, ElementType::f64}) {
    const Tensor many = reals({rows, 6}, values, type);
    const Tensor at = draw(many, ranges, {1, 17, 3, 5});
    Numbers count(6, 0);
    for (const double j : at.values()) count.at(static_cast<size_t>(j))++;
    for (size_t j = 0; j < 6; ++j) {
      const double error = std::sqrt(p[j] * (1 - p[j]) * static_cast<double>(rows));
      EXPECT_NEAR(count[j], p[j] * static_cast<double>(rows), 4 * error);
    }
    EXPECT_EQ(draw(many, ranges, {1, 17, 3, 5}).values(), at.values());
    for (const Dropout& other : {Dropout{1, 18, 3, 5}, {1, 17, 4, 5}, {1, 17, 3, 6}})
      EXPECT_NE(draw(many, ranges, other).values(), at.values());
  }
}

TEST(AttentionWindow, GradientPassesStraightThrough) {
  const Tensor soft = random_input({3, 4}, 1), hard = one_hot(integers({2, 0, 1}), soft);
  Tape tape;
  const Tensor y = straight_through(hard, soft);
  EXPECT_EQ(y.values(), hard.values());
  const Tensor seed = random_tensor({3, 4}, 2);
  tape.backward(y, seed);
  EXPECT_EQ(soft.grad().values(), seed.values());
  EXPECT_FALSE(hard.needs_grad());
}

TEST(AttentionWindow, GradientOfLogAndEntropy) {
  const Tensor e = random_input({3, 5}, 1);
  const ColumnRanges ranges{integers({0, 2, 1}), integers({5, 3, 4})};
  const Tensor at = integers({4, 2, 1});
  expect_gradient({e}, [&] { return log_at(softmax_within(e, ranges), at); });
  expect_gradient({e}, [&] { return entropy(softmax_within(e, ranges)); });
  const Tensor p = tracked({2, 3}, {0.2, 0.5, 0.3, 0.1, 0.8, 0.1});
  expect_gradient({p}, [&] { return log_at(p, integers({-1, 2})) + entropy(p) * 0.7; });
}

TEST(AttentionWindow, EntropyOfKnownDistributions) {
  const Tensor p = reals({3, 4}, {1, 0, 0, 0, 0.25, 0.25, 0.25, 0.25, 0.5, 0.5, 0, 0});
  const auto H = entropy(p).values();
  EXPECT_EQ(H[0], 0);
  EXPECT_NEAR(H[1], std::log(4.0), 1e-15);
  EXPECT_NEAR(H[2], std::log(2.0), 1e-15);
  EXPECT_EQ(log_at(p, integers({0, -1, 1})).values(), (Numbers{0, 0, std::log(0.5)}));
  // A chosen column with probability 0: the value and the gradient are finite.
  const Tensor none = reals({1, 2}, {0, 1}, ElementType::f32);
  EXPECT_TRUE(std::isfinite(log_at(none, integers({0})).values()[0]));
}

TEST(AttentionWindow, GradientOfFirstColumns) {
  for (const int64_t width : {2, 5, 8}) {
    const Tensor x = random_input({4, width}, 1);
    expect_gradient({x}, [&] { return first_columns(x, example()); });
    const auto y = first_columns(x, example()).values(), from = x.values();
    const auto n = example().lengths().values();
    for (int64_t i = 0; i < 4; ++i)
      for (int64_t j = 0; j < 5; ++j) {
        const bool inside = j < width && static_cast<double>(j) < n[static_cast<size_t>(i)];
        EXPECT_EQ(y[static_cast<size_t>(i * 5 + j)],
                  inside ? from[static_cast<size_t>(i * width + j)] : 0);
      }
  }
}

TEST(AttentionWindow, GradientOfGaussian) {
  const Tensor p = tracked({3, 1}, {0.3, 2.6, 5});
  expect_gradient({p}, [&] { return gaussian(p, 1.5, 4); });
  const auto y = gaussian(p, 1.5, 4).values();
  EXPECT_NEAR(y[6], std::exp(-0.4 * 0.4 / 4.5), 1e-15);  // row 1, position 3
  const Tensor one = tracked({1, 1}, {0.5});
  expect_gradient({one}, [&] { return gaussian(one, 0.5, 1); });
}

TEST(AttentionWindow, GradientOfMixture) {
  for (const int64_t K : {1, 3}) {
    const Tensor a = random_input({4, K}, 1), b = random_input({4, K}, 2),
                 k = random_input({4, K}, 3);
    expect_gradient({a, b, k}, [&] { return mixture(a, b, exp(k) * 2.0, example()); });
    const auto phi = mixture(a, b, k, example()).values();
    for (const size_t beyond : {5 + 3, 5 + 4, 10 + 1, 10 + 4}) EXPECT_EQ(phi[beyond], 0);
  }
}

TEST(AttentionWindow, GradientOfUncoveredSoftmax) {
  const RaggedQueries ragged{example().memory, integers({2, 1, 0, 2})};
  const Tensor e = random_input({4, 5}, 1);
  // The first two rows are covered completely.
  const Numbers coverage = {0.4, 1.2, 1.1, 1.4, 1.2,  //
                            1.0, 0,   0,   0,   0,    //
                            1.3, 0.4, 0.5, 0,   0,    //
                            0.2, 0.9, 0.1, 0,   0.3};
  const ColumnRanges words = full_range(ragged), m = range_from(integers({2, 0, 1, 2}), 1, words);
  const Tensor left = uncovered(reals({4, 5}, coverage), m);
  EXPECT_EQ(left.values(), (Numbers{0, 0,       0,       0, 0,  //
                                    0, 0,       0,       0, 0,  //
                                    0, 1 - 0.4, 0.5,     0, 0,  //
                                    0, 1 - 0.9, 1 - 0.1, 1, 1 - 0.3}));
  const auto alpha = softmax_uncovered(e, left, words).values();
  EXPECT_EQ(alpha[4], 1);
  EXPECT_EQ(alpha[5], 1);
  for (int64_t i = 0; i < 4; ++i) {
    double sum = 0;
    for (int64_t j = 0; j < 5; ++j) sum += alpha[static_cast<size_t>(i * 5 + j)];
    EXPECT_NEAR(sum, 1, 1e-15);
  }
  expect_gradient({e}, [&] { return softmax_uncovered(e, left, words); });
  Numbers smooth = coverage;  // away from the kink of min(1, ·), where finite differences are wrong
  smooth[5] = 1.01;
  const Tensor covered = tracked({4, 5}, smooth);
  expect_gradient({covered}, [&] { return uncovered(covered, m); });
  expect_gradient({e, covered}, [&] { return softmax_uncovered(e, uncovered(covered, m), words); });
}

TEST(AttentionWindow, UncoveredSoftmaxHandlesDistantScores) {
  const Tensor e = reals({1, 3}, {300, 0, -100}, ElementType::f32);
  const Tensor left = reals({1, 3}, {0, 1e-5, 1}, ElementType::f32);
  const ColumnRanges words{integers({0}), integers({3})};
  const auto alpha = softmax_uncovered(e, left, words).values();
  EXPECT_EQ(alpha[0], 0);
  EXPECT_NEAR(alpha[1], 1, 1e-6);
}

TEST(AttentionWindow, FloatAgreesWithDouble) {
  const RaggedQueries ragged = example();
  const Tensor a = random_tensor({4, 5}, 1), b = random_tensor({4, 5}, 2),
               k = random_tensor({4, 5}, 3);
  const Tensor left = random_tensor({4, 5}, 4, ElementType::f64, 0.1);
  const Tensor rest = uncovered(left, full_range(ragged));
  EXPECT_LE(nmse(mixture(in_float(a), in_float(b), in_float(k), ragged), mixture(a, b, k, ragged)),
            1e-10);
  EXPECT_LE(nmse(softmax_uncovered(in_float(a), in_float(rest), full_range(ragged)),
                 softmax_uncovered(a, rest, full_range(ragged))),
            1e-10);
  EXPECT_LE(nmse(entropy(softmax_within(in_float(a), full_range(ragged))),
                 entropy(softmax_within(a, full_range(ragged)))),
            1e-10);
  const Tensor p = random_tensor({4, 1}, 5, ElementType::f64, 3);
  EXPECT_LE(nmse(gaussian(in_float(p), 2, 5), gaussian(p, 2, 5)), 1e-10);
}

}  // namespace
}  // namespace fovea
