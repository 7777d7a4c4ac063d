#include "cli/explanation.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <nlohmann/json.hpp>

#include "cli/attention_picture.h"
#include "view/label.h"
#include "view/steps.h"
#include "view/steps_json.h"

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
  AttentionRow row = find(package);
  row.layer = std::max<int64_t>(asked.layer, 0);
  row.head = std::max<int64_t>(asked.head, 0);
  found_ = explain_row(package, pair.source, pair.target, row);
}

// The kind and the row, and the word as it is written.
AttentionRow Explanation::find(const Package& package) {
  struct Place {
    const char* kind;
    const Vocabulary& vocabulary;
    std::span<const int32_t> asking;
  };
  const std::vector<int32_t> read = read_before(pair_.target);
  const bool multi_head = mechanism_of(package.config).empty();
  std::vector<Place> places;
  if (multi_head) places.push_back({"encoder", package.source, pair_.source});
  places.push_back({"cross", package.target, pair_.target});
  if (multi_head) places.push_back({"decoder", package.target, read});
  std::vector<std::string> there;
  for (const Place& place : places) {
    if (asked_.kind.empty() ? place.kind == std::string("decoder") : asked_.kind != place.kind)
      continue;
    const PictureSide side = picture_side(place.vocabulary, place.asking, PictureUnit::words);
    there.push_back(joined(side.labels));
    const std::optional<size_t> piece = piece_of(place.vocabulary, place.asking, asked_.word);
    if (!piece) continue;
    const std::vector<std::string> all = place.vocabulary.pieces(place.asking);
    for (size_t i = 0; i < all.size(); ++i)
      if (side.words[i] == side.words[*piece]) parts_.push_back(all[i]);
    asked_.word = side.labels[static_cast<size_t>(side.words[*piece])];
    return {.kind = place.kind, .row = static_cast<int64_t>(*piece)};
  }
  check(!there.empty(), Exit::usage, "--kind ", asked_.kind, ": this model has no such attention");
  fail(Exit::usage, "--explain: there is no word '", asked_.word,
       "' in: ", fmt::format("{}", fmt::join(there, "; ")));
}

std::string Explanation::title() const {
  const std::string word = "\"" + label(asked_.word) + "\"";
  const auto& [kind, layer, head, row] = found_.row;
  const std::string& mechanism = found_.mechanism;
  const std::string what = kind == "cross" ? "What is read of the source to write " + word
                                           : "What " + word + " reads of the words " +
                                                 (kind == "encoder" ? "around it" : "before it");
  std::string text = what + "\n" + (mechanism.empty() ? kind + " attention" : mechanism);
  if (mechanism.empty()) {
    text += fmt::format(", layer {}, head {}", layer, head);
    if (asked_.layer < 0 || asked_.head < 0) text += " (others: --layer, --head)";
  }
  if (parts_.size() > 1)
    text += fmt::format("\nThe word has pieces {}; this is {}. Name a piece to see another.",
                        joined(parts_), label(found_.asking[static_cast<size_t>(row)]));
  return text;
}

std::string Explanation::text(const TerminalOptions& terminal) const {
  return title() + "\n\n" + terminal_steps(found_.steps, found_.pieces, terminal);
}

std::string Explanation::json() const {
  Json all{{"source", pair_.text},
           {"translation", pair_.translation},
           {"word", asked_.word},
           {"kind", found_.row.kind},
           {"layer", found_.row.layer},
           {"head", found_.row.head},
           {"piece", found_.row.row},
           {"pieces", found_.pieces},
           {"steps", steps_json(found_.steps)}};
  if (!found_.mechanism.empty()) all["mechanism"] = found_.mechanism;
  return all.dump(-1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace fovea
