#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "eval/bleu.h"
#include "eval/chrf.h"
#include "eval/metric.h"
#include "eval/report.h"
#include "eval/tercom.h"

namespace fovea {

// The options of an evaluation and of its report.
struct EvaluationOptions {
  std::vector<std::string> metrics = {"bleu"};  // "bleu", "chrf", "chrf++", "ter"
  BleuOptions bleu = {};
  ChrfOptions chrf = {};
  TercomOptions ter = {};
  int width = 1;  // number of decimals of scores
  bool json = false, score_only = false, abbreviated = false;
  bool sentence_level = false, confidence = false, paired_bs = false, paired_ar = false;
  size_t confidence_n = 1000, paired_bs_n = 1000, paired_ar_n = 10000;

  SignatureStyle names() const {
    return abbreviated ? SignatureStyle::abbreviated : SignatureStyle::full;
  }
};

// The lines of a text, and the name of the text in the report.
struct NamedText {
  std::string name;
  Lines lines;
};

// Returns the report about the systems. If the texts have different numbers of lines, throws
// ExitCode::data. REQUIRES: at least one system; with `sentence_level` or `confidence`, exactly
// one.
std::string evaluation_report(const EvaluationOptions& options,
                              const std::vector<NamedText>& systems,
                              std::span<const Lines> references);

}  // namespace fovea
