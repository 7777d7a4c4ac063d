#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "eval/metric.h"
#include "eval/significance.h"

namespace fovea {

// What else belongs into a signature besides the metric's settings.
struct SignatureContext {
  size_t references = 1;
  std::optional<size_t> bootstrap, randomization;  // how many samples or trials
};

// sacreBLEU's items in sacreBLEU's order; the version is ours, followed by the version of
// sacreBLEU whose definitions the score follows.
Signature signature(const TranslationMetric& metric, const SignatureContext& context);

enum class SignatureStyle { full, abbreviated };
std::string to_string(const Signature& signature, SignatureStyle names = SignatureStyle::full);

// One metric of one system, ready to be printed.
struct ScoreReport {
  std::string name;
  Signature signature;
  TestedScore score;
  std::string details;
};

// "55.9", with an interval "55.9 (μ = 55.9 ± 3.7)"
std::string score_text(const ScoreReport& report, int width);

// "BLEU|nrefs:1|… = 55.9 84.0/67.3/55.3/45.9 (BP = …)"
std::string score_line(const ScoreReport& report, int width,
                       SignatureStyle names = SignatureStyle::full);

// The object that sacreBLEU prints, its keys in the same order.
std::string score_json(const ScoreReport& report, int width);

}  // namespace fovea
