#pragma once

#include <optional>
#include <string_view>

#include "eval/metric.h"
#include "eval/metric_tokenizers.h"

namespace fovea {

// If an order of n-grams has no match, how its precision is replaced (Chen and Cherry, WMT 2014).
enum class BleuSmoothing { none, floor, add_k, exp };

// Parses "exp", "floor", "add-k" or "none". Throws ExitCode::usage for any other name.
BleuSmoothing bleu_smoothing(std::string_view name);

struct BleuOptions {
  BleuTokenizer tokenize = BleuTokenizer::mteval13;
  BleuSmoothing smooth = BleuSmoothing::exp;
  std::optional<double> smooth_value = std::nullopt;  // no value: 0.1 for floor, 1 for add_k
  bool lowercase = false;
  bool effective_order = false;  // omit orders longer than the text, for single sentences
  size_t max_order = 4;
};

// A BLEU score with its components.
struct BleuScore {
  double score = 0;
  double brevity_penalty = 0;
  std::vector<double> matches, totals, precisions;  // element n − 1 belongs to order n
  double hypothesis_length = 0, reference_length = 0;
};

// Papineni, Roukos, Ward, Zhu: BLEU: a Method for Automatic Evaluation of Machine Translation, ACL
// 2002. A row of statistics has, in this order, the length of the hypothesis, the length of the
// nearest reference, the number of matches per order, and the number of n-grams of the hypothesis
// per order.
class Bleu : public TranslationMetric {
 public:
  explicit Bleu(BleuOptions options = {}) : options_(options) {}

  std::string name() const override { return "BLEU"; }
  Signature settings() const override;
  SegmentStatistics statistics(const Lines& hypotheses,
                               std::span<const Lines> references) const override;
  double score(std::span<const double> sums) const override;
  double score(std::span<const float> sums) const override;
  std::string details(std::span<const double> sums) const override;

  BleuScore detailed(std::span<const double> sums) const;

 private:
  template <class Real>
  BleuScore compute(std::span<const Real> sums) const;

  BleuOptions options_;
};

// Corpus BLEU, 0 to 100, against one reference per hypothesis.
double bleu(const Lines& hypotheses, const Lines& references, const BleuOptions& options = {});

}  // namespace fovea
