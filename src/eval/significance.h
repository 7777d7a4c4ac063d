#pragma once

#include <optional>
#include <vector>

#include "eval/metric.h"

namespace fovea {

// A score with what resampling says about it.
struct TestedScore {
  double score = 0;
  std::optional<double> p_value;   // of the difference from the baseline
  std::optional<double> mean, ci;  // of the resampled scores; half the width of the 95 % interval
};

struct ConfidenceInterval {
  double mean = 0, ci = 0;
};

// Draws `samples` corpora of the same size from the segments, with replacement, and scores each
// (Koehn: Statistical Significance Tests for Machine Translation Evaluation, EMNLP 2004).
// REQUIRES: at least one segment, one sample.
std::vector<double> bootstrap_scores(const TranslationMetric& metric,
                                     const SegmentStatistics& statistics, size_t samples);

ConfidenceInterval confidence_interval(std::vector<double> scores);

enum class PairedTest { bootstrap, approximate_randomization };

// Compares every system with the first, the baseline, which gets no p-value; a score equal to the
// baseline's has p = 1. Approximate randomisation (Riezler and Maxwell 2005) gives no means or
// intervals.
// REQUIRES: at least one system; all of as many segments.
std::vector<TestedScore> paired_test(PairedTest test, const TranslationMetric& metric,
                                     const std::vector<SegmentStatistics>& systems, size_t trials);

}  // namespace fovea
