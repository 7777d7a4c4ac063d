#include "eval/report.h"

#include <fmt/format.h>

#include <array>
#include <nlohmann/json.hpp>
#include <string_view>
#include <utility>

#include "eval/pcg64.h"

namespace fovea {
namespace {

std::string_view abbreviation(std::string_view key, std::string_view metric) {
  if (metric == "TER" && key == "tok") return "t";
  static constexpr std::array<std::pair<std::string_view, std::string_view>, 10> kShort{
      {{"nrefs", "#"},
       {"seed", "rs"},
       {"case", "c"},
       {"eff", "e"},
       {"smooth", "s"},
       {"space", "s"},
       {"norm", "nr"},
       {"punct", "pn"},
       {"asian", "as"},
       {"version", "v"}}};
  for (const auto& [full, brief] : kShort)
    if (full == key) return brief;
  return key;
}

// Rounds x to `width` decimals. The text report prints the same number of decimals, so JSON has the
// same number.
double rounded(double x, int width) { return std::stod(fmt::format("{:.{}f}", x, width)); }

bool has_interval(const TestedScore& score) { return score.mean && *score.mean > 0; }

std::string interval_text(const TestedScore& score, int width) {
  return fmt::format("μ = {:.{}f} ± {:.{}f}", *score.mean, width, *score.ci, width);
}

}  // namespace

Signature signature(const TranslationMetric& metric, const SignatureContext& context) {
  Signature items{{"nrefs", std::to_string(context.references)}};
  if (context.bootstrap) items.emplace_back("bs", std::to_string(*context.bootstrap));
  if (context.randomization) items.emplace_back("ar", std::to_string(*context.randomization));
  if (context.bootstrap || context.randomization)
    items.emplace_back("seed", std::to_string(Pcg64::kSeed));
  for (auto& item : metric.settings()) items.push_back(std::move(item));
  items.emplace_back("version", "fovea-" FOVEA_VERSION);
  items.emplace_back("sacrebleu-compatible", "2.6.0");
  return items;
}

std::string to_string(const Signature& signature, SignatureStyle names) {
  bool ter = false;
  for (const auto& [key, value] : signature) ter |= key == "tok" && value == "tercom";
  std::string text;
  for (const auto& [key, value] : signature) {
    if (!text.empty()) text += '|';
    text +=
        names == SignatureStyle::full ? std::string_view(key) : abbreviation(key, ter ? "TER" : "");
    text += ':';
    text += value;
  }
  return text;
}

std::string score_text(const ScoreReport& report, int width) {
  std::string text = fmt::format("{:.{}f}", report.score.score, width);
  if (has_interval(report.score)) text += " (" + interval_text(report.score, width) + ")";
  return text;
}

std::string score_line(const ScoreReport& report, int width, SignatureStyle names) {
  std::string line = fmt::format("{}|{} = {}", report.name, to_string(report.signature, names),
                                 score_text(report, width));
  return report.details.empty() ? line : line + " " + report.details;
}

std::string score_json(const ScoreReport& report, int width) {
  nlohmann::ordered_json json{{"name", report.name},
                              {"score", rounded(report.score.score, width)},
                              {"signature", to_string(report.signature)}};
  if (has_interval(report.score)) {
    json["confidence_mean"] = rounded(*report.score.mean, width);
    json["confidence_var"] = rounded(*report.score.ci, width);
    json["confidence"] = interval_text(report.score, width);
  }
  if (!report.details.empty()) json["verbose_score"] = report.details;
  for (const auto& [key, value] : report.signature) json[key] = value;
  return json.dump(1);
}

}  // namespace fovea
