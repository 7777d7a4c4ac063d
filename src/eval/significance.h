#pragma once

#include <optional>
#include <vector>

#include "eval/metric.h"

namespace fovea {

// A score with the results of resampling.
struct TestedScore {
  double score = 0;
  std::optional<double> p_value;   // of the difference from the baseline
  std::optional<double> mean, ci;  // of the resampled scores: mean, half of the 95 % interval
};

struct ConfidenceInterval {
  double mean = 0, ci = 0;
};

// Returns the scores of `samples` random corpora. Each has as many segments as the original, drawn
// from it with replacement (Koehn: Statistical Significance Tests for Machine Translation
// Evaluation, EMNLP 2004). REQUIRES: at least one segment and one sample.
std::vector<double> bootstrap_scores(const TranslationMetric& metric,
                                     const SegmentStatistics& statistics, size_t samples);

ConfidenceInterval confidence_interval(std::vector<double> scores);

enum class PairedTest { bootstrap, approximate_randomization };

// Compares each system with the first system, the baseline, which gets no p-value. If a score is
// equal to the baseline's score, p is 1. Approximate randomisation (Riezler and Maxwell 2005) gives
// no means or intervals. REQUIRES: at least one system; all systems have the same number of
// segments.
std::vector<TestedScore> paired_test(PairedTest test, const TranslationMetric& metric,
                                     const std::vector<SegmentStatistics>& systems, size_t trials);

}  // namespace fovea
