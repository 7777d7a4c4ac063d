#include "ops/topk.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/random.h"

namespace fovea {
namespace {

// Scores with `levels` different values: few levels give many ties.
Tensor random_scores(int64_t rows, int64_t cols, ElementType type, uint64_t levels = 40) {
  Random random(7, static_cast<uint64_t>(cols));
  std::vector<double> values(static_cast<size_t>(rows * cols));
  for (double& v : values)
    v = 10 * static_cast<double>(random.below(levels)) / static_cast<double>(levels) - 5;
  return Tensor::of({rows, cols}, values, type);
}

void expect_sorted(const Tensor& x, int64_t k) {
  const int64_t cols = x.cols();
  const std::vector<double> scores = x.values();
  const TopK best = top_k(x, k);
  const std::vector<double> values = best.values.values(), sums = best.log_sum.values();
  for (int64_t i = 0; i < x.rows(); ++i) {
    const double* row = scores.data() + i * cols;
    std::vector<int32_t> order(static_cast<size_t>(cols));
    std::iota(order.begin(), order.end(), 0);
    std::ranges::stable_sort(order, [&](int a, int b) { return row[a] > row[b]; });
    double sum = 0;
    for (int64_t j = 0; j < cols; ++j) sum += std::exp(row[j]);
    EXPECT_NEAR(sums[i], std::log(sum), 1e-5);
    for (int64_t j = 0; j < k; ++j) {
      const int32_t column = best.columns.data<int32_t>()[i * k + j];
      ASSERT_EQ(column, j < cols ? order[j] : -1) << "k " << k << " of " << cols;
      EXPECT_TRUE(j >= cols || values[i * k + j] == row[column]);
    }
  }
}

TEST(TopK, AgreesWithSorting) {
  for (const ElementType type : {ElementType::f32, ElementType::f64})
    for (const int64_t cols : {1, 2, 5, 127, 128, 129, 1000})
      for (const uint64_t levels : {4u, 40u, 400u})
        for (const int64_t k : {1, 3, 8, 40})
          expect_sorted(random_scores(5, cols, type, levels), k);
}

TEST(TopK, LargeAndUndefinedScores) {
  const double nan = std::nan("");
  const Tensor x =
      Tensor::of({2, 4}, std::vector{1e4, -1e4, nan, 1e4, nan, nan, nan, nan}, ElementType::f32);
  const TopK best = top_k(x, 3);
  const int32_t* columns = best.columns.data<int32_t>();
  EXPECT_EQ(std::vector<int32_t>(columns, columns + 6),
            (std::vector<int32_t>{0, 3, 1, -1, -1, -1}));
}

TEST(TopK, MeanOfProbabilities) {
  const Tensor a = random_scores(3, 300, ElementType::f64),
               b = random_scores(3, 300, ElementType::f64);
  const std::vector<Tensor> both{a, b};
  const std::vector<double> p = mean_probabilities(both).values();
  for (int64_t i = 0; i < 3; ++i) {
    double sum = 0;
    for (int64_t j = 0; j < 300; ++j) sum += p[i * 300 + j];
    EXPECT_NEAR(sum, 1, 1e-12);
  }
  const double first = std::exp(a.values()[4] - top_k(a, 1).log_sum.values()[0]);
  EXPECT_NEAR(p[4], first, 1e-12);
}

}  // namespace
}  // namespace fovea
