#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace fovea {

using Lines = std::vector<std::string>;

// What a metric needs to know of each segment, one row per segment. The score of any collection
// of segments depends only on the sum of their rows, so resampling never looks at text again.
struct SegmentStatistics {
  size_t width = 0;
  std::vector<double> values;  // [segments, width]

  size_t segments() const { return width == 0 ? 0 : values.size() / width; }
  std::span<const double> row(size_t segment) const {
    return {values.data() + segment * width, width};
  }
  std::vector<double> sum() const;
};

// "nrefs:1|case:mixed|…": what must be told with a score so that another can reproduce it.
using Signature = std::vector<std::pair<std::string, std::string>>;

// A corpus-level measure of translations against references, as sacreBLEU 2.6.0 defines it.
class TranslationMetric {
 public:
  virtual ~TranslationMetric() = default;

  virtual std::string name() const = 0;

  // The metric's own part of the signature.
  virtual Signature settings() const = 0;

  // REQUIRES: as many lines in each of `references` as in `hypotheses`, at least one reference.
  virtual SegmentStatistics statistics(const Lines& hypotheses,
                                       std::span<const Lines> references) const = 0;

  // From summed rows. The second form is for resampled sums: they are held in single precision,
  // because that is how the published confidence intervals are computed.
  virtual double score(std::span<const double> sums) const = 0;
  virtual double score(std::span<const float> sums) const = 0;

  // What stands behind the score in the text form, such as BLEU's precisions; may be empty.
  virtual std::string details(std::span<const double> sums) const;
};

// Fails with Exit::data unless every reference has one line per hypothesis.
void check_parallel(const Lines& hypotheses, std::span<const Lines> references);

double corpus_score(const TranslationMetric& metric, const Lines& hypotheses,
                    std::span<const Lines> references);

}  // namespace fovea
