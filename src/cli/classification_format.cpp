#include "cli/classification_format.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "base/check.h"
#include "base/utf8.h"
#include "cli/translation_format.h"

namespace fovea {
namespace {

constexpr size_t kTopWords = 3;      // maximum number of words in a line of text
constexpr float kMinWeight = 0.05f;  // minimum for all words of the line except the first

// Returns the words with the largest weights: "aspen .61, far .30".
std::string top_words(const ClassificationResult& result) {
  std::vector<size_t> order(result.words.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::ranges::stable_sort(
      order, [&](size_t a, size_t b) { return result.weights[a] > result.weights[b]; });
  std::string list;
  for (size_t k = 0; k < std::min(kTopWords, order.size()); ++k) {
    const float weight = result.weights[order[k]];
    if (k > 0 && weight < kMinWeight) break;
    list += fmt::format("{}{} {}", k > 0 ? ", " : "", printable(result.words[order[k]]),
                        short_weight(weight));
  }
  return list;
}

}  // namespace

ClassificationItem parse_text_item(const std::string& line, const QuestionRule& rule,
                                   const std::string& where) {
  ClassificationItem item{.input = {line, rule.question}, .where = where};
  if (!rule.from_lines() || line.find_first_not_of(" \t") == line.npos) return item;
  const auto tabs = std::ranges::count(line, '\t');
  check(tabs == 1, ExitCode::data, where,
        ": expected 2 columns, document and question, separated by a tab, found ", tabs + 1,
        "; to ask the same question of all texts, use --question");
  item.input = {line.substr(0, line.find('\t')), line.substr(line.find('\t') + 1)};
  return item;
}

ClassificationItem parse_json_item(const std::string& line, const QuestionRule& rule,
                                   const std::string& where) {
  InputLine parsed = parse_json_line(line, 0, where);
  ClassificationItem item{.input = {parsed.text, rule.question}, .where = where};
  item.fields = std::move(parsed.fields);
  if (!rule.from_lines()) return item;
  check(item.fields.contains("question") && item.fields["question"].is_string(), ExitCode::data,
        where, ": the object has no string \"question\"; add it, or use --question");
  item.input.question = item.fields["question"];
  return item;
}

std::string classification_text(const ClassificationResult& result, const TerminalOptions* shades) {
  if (result.label.empty()) return "\n";
  std::string line = fmt::format("{}\t{:.4f}", result.label, result.probability);
  if (!result.weights.empty())
    line +=
        "\t" + (shades ? shaded_words({result.words, {result.label}, result.weights}, 0, *shades)
                       : top_words(result));
  return line + "\n";
}

std::string classification_json(const ClassificationItem& item, const ClassificationResult& result,
                                LabelKind kind, int64_t id) {
  using Json = nlohmann::ordered_json;
  Json object = item.fields.is_object() ? item.fields : Json::object();
  if (!object.contains("id")) object["id"] = id;
  object["text"] = replace_invalid_utf8(item.input.text);
  if (kind == LabelKind::answer) object["question"] = replace_invalid_utf8(item.input.question);
  if (!item.gold.empty()) object["gold"] = item.gold;
  object["label"] = result.label;
  object["probability"] = rounded(result.probability);
  object["labels"] = Json::object();
  for (const auto& [label, probability] : result.labels)
    object["labels"][label] = rounded(probability);
  object["words"] = result.words;
  object["weights"] = rounded_list(result.weights, 1e4);
  return json_line(object);
}

}  // namespace fovea
