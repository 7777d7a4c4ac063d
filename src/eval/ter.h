#pragma once

#include "eval/metric.h"
#include "eval/metric_tokenizers.h"

namespace fovea {

// Translation edit rate as tercom computes it. Lower is better, and more than 100 is possible. A
// row of statistics has two numbers: the minimum number of edits to one of the references, and the
// mean length of the references.
class Ter : public TranslationMetric {
 public:
  explicit Ter(TercomOptions options = {}) : options_(options) {}

  std::string name() const override { return "TER"; }
  Signature settings() const override;
  SegmentStatistics statistics(const Lines& hypotheses,
                               std::span<const Lines> references) const override;
  double score(std::span<const double> sums) const override;
  double score(std::span<const float> sums) const override;

 private:
  TercomOptions options_;
};

// Corpus TER against one reference per hypothesis.
double ter(const Lines& hypotheses, const Lines& references, const TercomOptions& options = {});

}  // namespace fovea
