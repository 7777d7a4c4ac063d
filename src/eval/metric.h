#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace fovea {

using Lines = std::vector<std::string>;

// The numbers from which a metric computes its score, with one row per segment (line). The score of
// a selection of segments depends only on the sum of their rows. So resampling does not read the
// text again.
struct SegmentStatistics {
  size_t width = 0;
  std::vector<double> values;  // [segments, width]

  size_t segments() const { return width == 0 ? 0 : values.size() / width; }
  std::span<const double> row(size_t segment) const {
    return {values.data() + segment * width, width};
  }
  std::vector<double> sum() const;
};

// The conditions that are necessary to reproduce a score, printed as "nrefs:1|case:mixed|…".
using Signature = std::vector<std::pair<std::string, std::string>>;

// A metric of a whole translation against references, as sacreBLEU 2.6.0 defines it.
class TranslationMetric {
 public:
  virtual ~TranslationMetric() = default;

  virtual std::string name() const = 0;

  // The items of the signature that this metric defines.
  virtual Signature settings() const = 0;

  // Returns the numbers of each segment. REQUIRES: at least one reference; each has as many lines
  // as `hypotheses`.
  virtual SegmentStatistics statistics(const Lines& hypotheses,
                                       std::span<const Lines> references) const = 0;

  // Returns the score for a sum of rows. The second form is for sums in resampling. These have
  // single precision, because sacreBLEU computes confidence intervals in single precision.
  virtual double score(std::span<const double> sums) const = 0;
  virtual double score(std::span<const float> sums) const = 0;

  // Returns the text after the score in the report, such as BLEU's precisions. It may be empty.
  virtual std::string details(std::span<const double> sums) const;
};

// If a reference has not exactly one line per hypothesis, throws ExitCode::data.
void check_parallel(const Lines& hypotheses, std::span<const Lines> references);

double corpus_score(const TranslationMetric& metric, const Lines& hypotheses,
                    std::span<const Lines> references);

}  // namespace fovea
