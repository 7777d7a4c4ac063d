#include "cli/translation_format.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cmath>
#include <numbers>

#include "base/utf8.h"

namespace fovea {
namespace {

using Json = nlohmann::ordered_json;

// Returns the pieces without the final </s>.
std::span<const std::string> words_only(const std::vector<std::string>& pieces) {
  return std::span(pieces).first(pieces.empty() ? 0 : pieces.size() - 1);
}

Json to_json(const AttentionMap& map) {
  Json rows = Json::array();
  for (int64_t i = 0; i < map.rows; ++i)
    rows.push_back(rounded_list(std::span(map.weights).subspan(i * map.cols, map.cols), 1e4));
  return {{"kind", map.kind}, {"layer", map.layer}, {"head", map.head},
          {"rows", map.rows}, {"cols", map.cols},   {"data", std::move(rows)}};
}

void describe(const Alternative& a, const OutputDetails& details, Json& object) {
  object["translation"] = a.text;
  object["score"] = rounded(a.score);
  object["log_prob"] = rounded(a.log_prob);
  object["tokens"] = a.pieces;
  object["token_scores"] = rounded_list(a.log_probs);
  if (details.alignment) object["alignment"] = a.alignment;
}

std::string as_json(const InputLine& line, const Translation& t, const OutputDetails& details) {
  Json object = line.fields.is_object() ? line.fields : Json::object();
  if (!object.contains("id")) object["id"] = line.id;
  object["source"] = replace_invalid_utf8(line.text);
  describe(t.n_best.empty() ? Alternative{} : t.n_best.front(), details, object);
  object["source_tokens"] = t.source_pieces;
  if (details.n_best) {
    Json list = Json::array();
    for (const Alternative& a : t.n_best) describe(a, details, list.emplace_back(Json::object()));
    object["n_best"] = std::move(list);
  }
  if (!t.attention.empty()) {
    Json maps = Json::array();
    for (const AttentionMap& map : t.attention) maps.push_back(to_json(map));
    object["attention"] = std::move(maps);
  }
  return json_line(object);
}

std::string as_marian(const InputLine& line, const Translation& t, const OutputDetails& details) {
  const std::vector<Alternative> none(1);
  std::string text;
  for (const Alternative& a : t.n_best.empty() ? none : t.n_best) {
    text += fmt::format("{} ||| {}", line.id, a.text);
    if (details.alignment) text += " ||| " + pharaoh(a.alignment);
    text += fmt::format(" ||| F0= {:.6f} ||| {:.6f}\n", a.log_prob, a.score);
  }
  return text;
}

// Returns the output in the format of fairseq-generate. Scores are logarithms to the base 2, as in
// fairseq.
std::string as_fairseq(const InputLine& line, const Translation& t, const OutputDetails& details) {
  const double base = std::numbers::ln2;
  const std::vector<Alternative> none(1);
  std::string text =
      fmt::format("S-{}\t{}\n", line.id, fmt::join(words_only(t.source_pieces), " "));
  for (const Alternative& a : t.n_best.empty() ? none : t.n_best) {
    std::vector<std::string> scores;
    for (const float p : a.log_probs) scores.push_back(fmt::format("{:.4f}", p / base));
    text += fmt::format("H-{}\t{:.6f}\t{}\n", line.id, a.score / base,
                        fmt::join(words_only(a.pieces), " "));
    text += fmt::format("D-{}\t{:.6f}\t{}\n", line.id, a.score / base, a.text);
    text += fmt::format("P-{}\t{}\n", line.id, fmt::join(scores, " "));
    if (details.alignment) text += fmt::format("A-{}\t{}\n", line.id, pharaoh(a.alignment));
  }
  return text;
}

}  // namespace

double rounded(double value, double digits) { return std::round(value * digits) / digits; }

Json rounded_list(std::span<const float> values, double digits) {
  Json list = Json::array();
  for (const float v : values) list.push_back(rounded(v, digits));
  return list;
}

std::string json_line(const Json& object) {
  return object.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
}

namespace {

std::string string_of(const Json& value, const char* key, const std::string& where) {
  check(value.is_string(), ExitCode::data, where, ": \"", key, "\" has a value that is no string");
  return value.get<std::string>();
}

}  // namespace

InputLine parse_json_line(const std::string& line, int64_t id, const std::string& where) {
  Json object = Json::parse(line, nullptr, false);
  check(object.is_object(), ExitCode::data, where, ": not a JSON object; expected, for example, ",
        R"({"source": "A small dog."}; for plain text omit --input-format)");
  for (const char* key : {"source", "text"}) {
    if (!object.contains(key)) continue;
    check(object[key].is_string(), ExitCode::data, where, ": \"", key, "\" is not a string");
    InputLine parsed{.id = id, .text = object[key].get<std::string>()};
    parsed.prefix = string_of(object.value("prefix", Json("")), "prefix", where);
    const Json terms = object.value("terms", Json::array());
    check(terms.is_array(), ExitCode::data, where, ": \"terms\" is not a list of strings");
    for (const Json& term : terms) parsed.terms.push_back(string_of(term, "terms", where));
    parsed.fields = std::move(object);
    return parsed;
  }
  fail(ExitCode::data, where, ": the object has neither \"source\" nor \"text\"");
}

std::string format_translation(TranslationFormat format, const InputLine& line,
                               const Translation& translation, const OutputDetails& details) {
  switch (format) {
    case TranslationFormat::jsonl:
      return as_json(line, translation, details);
    case TranslationFormat::marian:
      return as_marian(line, translation, details);
    case TranslationFormat::fairseq:
      return as_fairseq(line, translation, details);
    case TranslationFormat::text:
      break;
  }
  if (!details.alignment) return translation.text + "\n";
  const bool empty = translation.n_best.empty();
  return translation.text + " ||| " + (empty ? "" : pharaoh(translation.n_best.front().alignment)) +
         "\n";
}

}  // namespace fovea
