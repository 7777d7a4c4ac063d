#include "eval/aer_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "base/check.h"
#include "eval/alignment_error_rate.h"

namespace fovea {
namespace {

AlignmentCounts counts_of(const std::string& input, const std::vector<GoldLinks>& gold,
                          const std::string& gold_name) {
  const std::vector<Links> pairs = read_pharaoh(input);
  const std::string name = input == "-" ? "standard input" : input;
  check(pairs.size() == gold.size(), ExitCode::data, name, " has ", pairs.size(), " lines, ",
        gold_name, " ", gold.size(),
        "; first line without partner: ", pairs.size() > gold.size() ? name : gold_name, ":",
        std::min(pairs.size(), gold.size()) + 1, "; links must match the gold ones line by line");
  AlignmentCounts counts;
  for (size_t i = 0; i < gold.size(); ++i) counts += count_links(pairs[i], gold[i]);
  return counts;
}

double percent(double share, int width) {
  const double digits = std::pow(10, width);
  return std::round(100 * share * digits) / digits;
}

nlohmann::ordered_json json_of(const AlignmentCounts& counts, const std::string& input, int width) {
  return {{"name", "AER"},
          {"system", input},
          {"score", percent(counts.error_rate(), width)},
          {"precision", percent(counts.precision(), width)},
          {"recall", percent(counts.recall(), width)},
          {"links", counts.links},
          {"sure", counts.sure}};
}

std::string text_of(const AlignmentCounts& counts, int width) {
  return fmt::format("AER = {:.{}f} (precision = {:.{}f} recall = {:.{}f} links = {} sure = {})",
                     100 * counts.error_rate(), width, 100 * counts.precision(), width,
                     100 * counts.recall(), width, counts.links, counts.sure);
}

}  // namespace

std::string evaluate_aer(const AerOptions& options) {
  const std::vector<GoldLinks> gold =
      read_talp(options.gold, static_cast<CountedFrom>(options.gold_from));
  check(!gold.empty(), ExitCode::data, options.gold, " is empty: there is nothing to evaluate");
  auto objects = nlohmann::ordered_json::array();
  std::string text;
  for (const std::string& input : options.inputs) {
    const AlignmentCounts counts = counts_of(input, gold, options.gold);
    objects.push_back(json_of(counts, input, options.width));
    if (options.score_only)
      text += fmt::format("{:.{}f}\n", 100 * counts.error_rate(), options.width);
    else
      text +=
          (options.inputs.size() > 1 ? input + ": " : "") + text_of(counts, options.width) + "\n";
  }
  if (!options.json) return text;
  const auto& shown = objects.size() == 1 ? objects.front() : objects;
  return shown.dump(1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
}

}  // namespace fovea
