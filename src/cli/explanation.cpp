#include "cli/explanation.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <nlohmann/json.hpp>

#include "cli/attention_picture.h"
#include "text/batch.h"
#include "view/label.h"
#include "view/steps.h"

namespace fovea {
namespace {

using Json = nlohmann::ordered_json;

// The word without ASCII punctuation around it, or itself where nothing else is left.
std::string_view bare(std::string_view word) {
  const auto mark = [](char c) { return std::ispunct(static_cast<unsigned char>(c)) != 0; };
  std::string_view inner = word;
  while (!inner.empty() && mark(inner.front())) inner.remove_prefix(1);
  while (!inner.empty() && mark(inner.back())) inner.remove_suffix(1);
  return inner.empty() ? word : inner;
}

// n of a text "n"; 0: it is no number.
size_t number_in(const std::string& text) {
  const bool digits = std::ranges::all_of(
      text, [](char c) { return std::isdigit(static_cast<unsigned char>(c)) != 0; });
  return digits && !text.empty() && text.size() < 7 ? std::stoul(text) : 0;
}

std::string joined(const std::vector<std::string>& words) {
  std::string all;
  for (const std::string& word : words) all += (all.empty() ? "" : " ") + label(word);
  return all;
}

}  // namespace

std::optional<size_t> piece_of(const Vocabulary& vocabulary, std::span<const int32_t> ids,
                               const std::string& word) {
  const PictureSide side = picture_side(vocabulary, ids, PictureUnit::words);
  const auto first_piece = [&](auto found) -> size_t {
    const auto number = static_cast<int>(found - side.labels.begin());
    return static_cast<size_t>(std::ranges::find(side.words, number) - side.words.begin());
  };
  auto found = std::ranges::find(side.labels, word);
  if (found == side.labels.end())
    found = std::ranges::find_if(side.labels, [&](const auto& l) { return bare(l) == bare(word); });
  if (found != side.labels.end()) return first_piece(found);
  const std::vector<std::string> pieces = vocabulary.pieces(ids);
  if (const auto piece = std::ranges::find(pieces, word); piece != pieces.end())
    return static_cast<size_t>(piece - pieces.begin());
  const size_t number = number_in(word);
  if (number == 0 || number > side.labels.size()) return std::nullopt;
  return first_piece(side.labels.begin() + static_cast<std::ptrdiff_t>(number) - 1);
}

Explanation::Explanation(const Package& package, const ExplainedPair& pair,
                         const ExplainedWord& asked)
    : pair_(pair), asked_(asked) {
  const ModelConfig& config = package.config;
  if (config.type == "recurrent") {
    check(config.attention.attends(), Exit::usage,
          "--explain: this model was trained without attention");
    mechanism_ = config.attention.kind + " attention";
    if (config.attention.kind != "window") mechanism_ += ", score " + config.attention.score_name();
  }
  std::vector<int32_t> read{kBos};  // what the decoder has read when it writes each word
  read.insert(read.end(), pair.target.begin(), pair.target.end() - 1);
  find(package, read);
  check_place(config);
  row_.layer = std::max<int64_t>(asked.layer, 0);
  row_.head = std::max<int64_t>(asked.head, 0);

  Packed from, to;
  from.add(pair.source, Packed::Mark::none);
  to.add(read, Packed::Mark::none);
  steps_ = package.model->explain({from.ids, from.offsets}, {to.ids, to.offsets}, row_);
}

// Sets the kind, the row, and the pieces that are looked at.
void Explanation::find(const Package& package, const std::vector<int32_t>& read) {
  struct Place {
    const char* kind;
    const Vocabulary& vocabulary;
    std::span<const int32_t> asking, looked_at;
  };
  std::vector<Place> places;
  if (mechanism_.empty()) places.push_back({"encoder", package.source, pair_.source, pair_.source});
  places.push_back({"cross", package.target, pair_.target, pair_.source});
  if (mechanism_.empty()) places.push_back({"decoder", package.target, read, read});
  std::vector<std::string> there;
  for (const Place& place : places) {
    if (asked_.kind.empty() ? place.kind == std::string("decoder") : asked_.kind != place.kind)
      continue;
    const PictureSide side = picture_side(place.vocabulary, place.asking, PictureUnit::words);
    there.push_back(joined(side.labels));
    const std::optional<size_t> piece = piece_of(place.vocabulary, place.asking, asked_.word);
    if (!piece) continue;
    row_.kind = place.kind;
    row_.row = static_cast<int64_t>(*piece);
    const Vocabulary& looked = row_.kind == "decoder" ? package.target : package.source;
    pieces_ = looked.pieces(place.looked_at);
    if (row_.kind == "decoder") pieces_.resize(*piece + 1);
    const std::vector<std::string> all = place.vocabulary.pieces(place.asking);
    for (size_t i = 0; i < all.size(); ++i)
      if (side.words[i] == side.words[*piece]) parts_.push_back(all[i]);
    part_ = all[*piece];
    asked_.word = side.labels[static_cast<size_t>(side.words[*piece])];
    return;
  }
  check(!there.empty(), Exit::usage, "--kind ", asked_.kind, ": this model has no such attention");
  fail(Exit::usage, "--explain: there is no word '", asked_.word,
       "' in: ", fmt::format("{}", fmt::join(there, "; ")));
}

void Explanation::check_place(const ModelConfig& config) const {
  const bool recurrent = !mechanism_.empty();
  const int64_t layers = recurrent                ? 1
                         : row_.kind == "encoder" ? config.encoder_layers
                                                  : config.decoder_layers;
  const int64_t heads = recurrent ? 1 : config.heads;
  check(asked_.layer < layers, Exit::usage, "--layer ", asked_.layer,
        ": the model has layers 0 to ", layers - 1);
  check(asked_.head < heads, Exit::usage, "--head ", asked_.head, ": the model has heads 0 to ",
        heads - 1);
}

std::string Explanation::title() const {
  const std::string word = "\"" + label(asked_.word) + "\"";
  const std::string what = row_.kind == "cross"
                               ? "What is read of the source to write " + word
                               : "What " + word + " reads of the words " +
                                     (row_.kind == "encoder" ? "around it" : "before it");
  std::string text = what + "\n" + (mechanism_.empty() ? row_.kind + " attention" : mechanism_);
  if (mechanism_.empty()) {
    text += fmt::format(", layer {}, head {}", row_.layer, row_.head);
    if (asked_.layer < 0 || asked_.head < 0) text += " (others: --layer, --head)";
  }
  if (parts_.size() > 1)
    text += fmt::format("\nThe word has pieces {}; this is {}. Name a piece to see another.",
                        joined(parts_), label(part_));
  return text;
}

std::string Explanation::text(const TerminalOptions& terminal) const {
  return title() + "\n\n" + terminal_steps(steps_, pieces_, terminal);
}

std::string Explanation::json() const {
  Json steps = Json::array();
  int number = 0;
  for (const Step& step : steps_.all) {
    if (!step.formula.empty()) ++number;
    const bool words = step.of == Step::Of::words;
    Json values = words ? Json(step.rows) : Json(step.rows.front());
    const bool numbers =
        words && std::ranges::all_of(step.rows, [](const auto& row) { return row.size() == 1; });
    if (numbers) {
      values = Json::array();
      for (const auto& row : step.rows) values.push_back(row.front());
    }
    steps.push_back({{"step", number},
                     {"name", step.name},
                     {"formula", step.formula},
                     {"of", words ? "words" : "query"},
                     {"values", std::move(values)}});
  }
  Json all{{"source", pair_.text},     {"translation", pair_.translation},
           {"word", asked_.word},      {"kind", row_.kind},
           {"layer", row_.layer},      {"head", row_.head},
           {"piece", row_.row},        {"pieces", pieces_},
           {"steps", std::move(steps)}};
  if (!mechanism_.empty()) all["mechanism"] = mechanism_;
  return all.dump(-1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace fovea
