#include "eval/significance.h"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <functional>

#include "base/check.h"
#include "eval/pcg64.h"

namespace fovea {
namespace {

// Note [Order of additions]
// A p-value depends on the number of resampled differences that are larger than the observed
// difference. So an error in the last bit can change it. Therefore sums are added in NumPy's order.
// Resampled rows are added one after another in single precision. Means are computed by pairwise
// summation with eight running sums in each block, as in NumPy.
double pairwise_sum(std::span<const double> x) {
  constexpr size_t kBlock = 128;
  if (x.size() < 8) {
    double sum = 0;
    for (double value : x) sum += value;
    return sum;
  }
  if (x.size() > kBlock) {
    size_t half = x.size() / 2;
    half -= half % 8;
    return pairwise_sum(x.first(half)) + pairwise_sum(x.subspan(half));
  }
  double r[8];
  std::copy_n(x.begin(), 8, r);
  size_t i = 8;
  for (; i + 8 <= x.size(); i += 8)
    for (size_t k = 0; k < 8; ++k) r[k] += x[i + k];
  double sum = ((r[0] + r[1]) + (r[2] + r[3])) + ((r[4] + r[5]) + (r[6] + r[7]));
  for (; i < x.size(); ++i) sum += x[i];
  return sum;
}

double mean_of(std::span<const double> x) {
  return pairwise_sum(x) / static_cast<double>(x.size());
}

double observed(const TranslationMetric& metric, const SegmentStatistics& statistics) {
  return metric.score(std::span<const double>(statistics.sum()));
}

// Returns the fraction of the differences that are larger than the observed difference. Numerator
// and denominator are increased by one, so that a p-value is never 0. If the observed difference is
// 0, p is 1. (sacreBLEU has no such rule. For two copies of one system, no difference is larger
// than 0, so it would report a significant difference.)
double p_value(std::span<const double> differences, double observed_difference) {
  if (observed_difference == 0) return 1;
  auto larger = std::count_if(differences.begin(), differences.end(),
                              [=](double d) { return d > observed_difference; });
  return static_cast<double>(larger + 1) / static_cast<double>(differences.size() + 1);
}

double paired_bootstrap(const std::vector<double>& baseline, const std::vector<double>& system,
                        double observed_difference) {
  std::vector<double> differences(system.size());
  for (size_t i = 0; i < system.size(); ++i) differences[i] = std::abs(system[i] - baseline[i]);
  double mean = mean_of(differences);
  for (double& d : differences) d -= mean;  // the null hypothesis is that the systems do not differ
  return p_value(differences, observed_difference);
}

// Returns the p-value of approximate randomisation. Each trial exchanges some segments of the two
// systems, chosen at random. If the systems are alike, this changes the difference of their scores
// only a little.
double paired_randomization(const TranslationMetric& metric, const SegmentStatistics& a,
                            const SegmentStatistics& b, size_t trials, double observed_difference) {
  std::vector<double> a_minus_b(a.values.size());
  std::transform(a.values.begin(), a.values.end(), b.values.begin(), a_minus_b.begin(),
                 std::minus<>());
  const std::vector<double> sum_a = a.sum(), sum_b = b.sum();
  std::vector<double> first, second(a.width), differences;
  CoinStream coins;
  for (size_t t = 0; t < trials; ++t) {
    first = sum_b;
    const double* row = a_minus_b.data();
    for (size_t s = 0; s < a.segments(); ++s, row += a.width)
      if (coins.toss())
        for (size_t k = 0; k < a.width; ++k) first[k] += row[k];
    for (size_t k = 0; k < a.width; ++k) second[k] = sum_a[k] + sum_b[k] - first[k];
    differences.push_back(std::abs(metric.score(std::span<const double>(first)) -
                                   metric.score(std::span<const double>(second))));
  }
  return p_value(differences, observed_difference);
}

}  // namespace

std::vector<double> bootstrap_scores(const TranslationMetric& metric,
                                     const SegmentStatistics& statistics, size_t samples) {
  check(statistics.segments() > 0 && samples > 0, ExitCode::data, "nothing to resample from");
  std::vector<float> values(statistics.values.size());
  std::transform(statistics.values.begin(), statistics.values.end(), values.begin(),
                 [](double x) { return static_cast<float>(x); });
  std::vector<float> sums(statistics.width);
  std::vector<double> scores;
  auto segments = static_cast<uint32_t>(statistics.segments());
  Pcg64 generator;
  for (size_t i = 0; i < samples; ++i) {
    std::fill(sums.begin(), sums.end(), 0.0f);
    for (uint32_t s = 0; s < segments; ++s) {
      const float* row = values.data() + generator.below(segments) * statistics.width;
      for (size_t k = 0; k < statistics.width; ++k) sums[k] += row[k];
    }
    scores.push_back(metric.score(std::span<const float>(sums)));
  }
  return scores;
}

ConfidenceInterval confidence_interval(std::vector<double> scores) {
  std::sort(scores.begin(), scores.end());
  size_t lower = scores.size() / 40, upper = scores.size() - lower - 1;  // 2.5 % on either side
  return {mean_of(scores), 0.5 * (scores[upper] - scores[lower])};
}

std::vector<TestedScore> paired_test(PairedTest test, const TranslationMetric& metric,
                                     const std::vector<SegmentStatistics>& systems, size_t trials) {
  std::vector<TestedScore> results;
  std::vector<double> baseline;
  for (const SegmentStatistics& system : systems) {
    assert(system.segments() == systems.front().segments());
    TestedScore result{observed(metric, system), {}, {}, {}};
    bool is_baseline = results.empty();
    double difference = is_baseline ? 0.0 : std::abs(results.front().score - result.score);
    if (test == PairedTest::bootstrap) {
      std::vector<double> scores = bootstrap_scores(metric, system, trials);
      ConfidenceInterval interval = confidence_interval(scores);
      result.mean = interval.mean;
      result.ci = interval.ci;
      if (is_baseline) {
        baseline = std::move(scores);
      } else {
        result.p_value = paired_bootstrap(baseline, scores, difference);
      }
    } else if (!is_baseline) {
      result.p_value = paired_randomization(metric, systems.front(), system, trials, difference);
    }
    results.push_back(result);
  }
  return results;
}

}  // namespace fovea
