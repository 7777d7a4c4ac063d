#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "eval/metric.h"
#include "eval/significance.h"

namespace fovea {

// The items of a signature that do not depend on the metric.
struct SignatureContext {
  size_t references = 1;
  std::optional<size_t> bootstrap, randomization;  // number of samples; of trials
};

// Returns the signature with sacreBLEU's items in sacreBLEU's order. The item `version` is the
// version of Fovea, followed by the version of sacreBLEU that defines the score.
Signature signature(const TranslationMetric& metric, const SignatureContext& context);

enum class SignatureStyle { full, abbreviated };
std::string to_string(const Signature& signature, SignatureStyle names = SignatureStyle::full);

// The result of one metric for one system.
struct ScoreReport {
  std::string name;
  Signature signature;
  TestedScore score;
  std::string details;
};

// Returns "55.9" or, if there is an interval, "55.9 (μ = 55.9 ± 3.7)".
std::string score_text(const ScoreReport& report, int width);

// Returns a line such as "BLEU|nrefs:1|… = 55.9 84.0/67.3/55.3/45.9 (BP = …)".
std::string score_line(const ScoreReport& report, int width,
                       SignatureStyle names = SignatureStyle::full);

// Returns the JSON object that sacreBLEU prints, with the keys in the same order.
std::string score_json(const ScoreReport& report, int width);

}  // namespace fovea
