#pragma once

#include <optional>
#include <vector>

#include "eval/metric.h"

namespace fovea {

// A score with the results of resampling.
struct TestedScore {
  double score = 0;
  std::optional<double> p_value;   // of the difference to the baseline
  std::optional<double> mean, ci;  // resampled scores: mean, and half of the 95 % interval
};

struct ConfidenceInterval {
  double mean = 0, ci = 0;
};

// Draws `samples` corpora of the same size from the segments, with replacement, and returns their
// scores (Koehn: Statistical Significance Tests for Machine Translation Evaluation, EMNLP 2004).
// REQUIRES: at least one segment and one sample.
std::vector<double> bootstrap_scores(const TranslationMetric& metric,
                                     const SegmentStatistics& statistics, size_t samples);

ConfidenceInterval confidence_interval(std::vector<double> scores);

enum class PairedTest { bootstrap, approximate_randomization };

// Compares each system with the first one, the baseline, which gets no p-value. A score equal to
// that of the baseline has p = 1. Approximate randomisation (Riezler and Maxwell 2005) gives no
// means or intervals. REQUIRES: at least one system; all systems have the same number of segments.
std::vector<TestedScore> paired_test(PairedTest test, const TranslationMetric& metric,
                                     const std::vector<SegmentStatistics>& systems, size_t trials);

}  // namespace fovea
