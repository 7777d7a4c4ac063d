#include "eval/metric.h"

#include "base/check.h"

namespace fovea {

std::vector<double> SegmentStatistics::sum() const {
  std::vector<double> sums(width, 0.0);
  for (size_t i = 0; i < values.size(); ++i) sums[i % width] += values[i];
  return sums;
}

std::string TranslationMetric::details(std::span<const double>) const { return {}; }

void check_parallel(const Lines& hypotheses, std::span<const Lines> references) {
  check(!references.empty(), ExitCode::data, "no references: give at least one");
  for (const Lines& reference : references)
    check(reference.size() == hypotheses.size(), ExitCode::data, hypotheses.size(),
          " hypotheses but ", reference.size(), " references: give one reference per hypothesis");
}

double corpus_score(const TranslationMetric& metric, const Lines& hypotheses,
                    std::span<const Lines> references) {
  check_parallel(hypotheses, references);
  std::vector<double> sums = metric.statistics(hypotheses, references).sum();
  return metric.score(std::span<const double>(sums));
}

}  // namespace fovea
