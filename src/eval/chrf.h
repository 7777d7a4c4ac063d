#pragma once

#include "eval/metric.h"

namespace fovea {

struct ChrfOptions {
  size_t char_order = 6;
  size_t word_order = 0;  // 0 is chrF; 2 is chrF++
  int beta = 2;           // recall counts β times as much as precision
  bool lowercase = false;
  bool whitespace = false;     // whether character n-grams include white space
  bool eps_smoothing = false;  // the mean of F over all orders, instead of F of the means
};

// Popović: chrF: character n-gram F-score for automatic MT evaluation, WMT 2015, and chrF++: words
// helping character n-grams, WMT 2017. A row of statistics has three numbers for each order, first
// for the orders of characters, then for those of words: the number of n-grams of the hypothesis,
// of its best reference, and of matches.
class Chrf : public TranslationMetric {
 public:
  explicit Chrf(ChrfOptions options = {}) : options_(options) {}

  std::string name() const override;
  Signature settings() const override;
  SegmentStatistics statistics(const Lines& hypotheses,
                               std::span<const Lines> references) const override;
  double score(std::span<const double> sums) const override;
  double score(std::span<const float> sums) const override;

 private:
  template <class Real>
  double compute(std::span<const Real> sums) const;

  ChrfOptions options_;
};

// Corpus chrF2 (with word_order 2: chrF2++), 0 to 100, against one reference per hypothesis.
double chrf(const Lines& hypotheses, const Lines& references, const ChrfOptions& options = {});

}  // namespace fovea
