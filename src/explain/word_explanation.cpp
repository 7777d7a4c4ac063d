#include "explain/word_explanation.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <nlohmann/json.hpp>

#include "base/utf8.h"
#include "explain/attention_picture.h"
#include "explain/steps_json.h"
#include "explain/steps_text.h"
#include "models/intervention.h"
#include "text/word_breaks.h"
#include "view/label.h"

namespace fovea {
namespace {

using Json = nlohmann::ordered_json;

// Returns the word without ASCII punctuation before and after it. If it is only punctuation,
// returns it unchanged.
std::string_view bare(std::string_view word) {
  const auto mark = [](char c) { return std::ispunct(static_cast<unsigned char>(c)) != 0; };
  std::string_view inner = word;
  while (!inner.empty() && mark(inner.front())) inner.remove_prefix(1);
  while (!inner.empty() && mark(inner.back())) inner.remove_suffix(1);
  return inner.empty() ? word : inner;
}

// Parses the number of a word; the first word has number 1. If the text is not a number, returns 0.
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

std::string FoundWord::note(const std::string& word) const {
  if (piece || occurrences == 0) return "";
  return fmt::format("; '{}' occurs {}", word.substr(0, word.rfind('#')),
                     occurrences == 1 ? "once" : fmt::format("{} times", occurrences));
}

namespace {

// Searches words in the pieces of one sentence.
class WordSearch {
 public:
  WordSearch(const Vocabulary& vocabulary, std::span<const int32_t> ids)
      : vocabulary_(vocabulary), ids_(ids),
        side_(picture_side(vocabulary, ids, PictureUnit::words)) {}

  // Returns the index of the first piece of each occurrence of the word, in order.
  std::vector<size_t> occurrences(const std::string& word) const {
    if (std::ranges::any_of(code_points(word), is_unspaced)) return in_text(word);
    std::vector<size_t> found;
    for (size_t number = 0; number < side_.labels.size(); ++number)
      if (bare(side_.labels[number]) == bare(word)) found.push_back(first_piece(number));
    if (!found.empty()) return found;
    const std::vector<std::string> pieces = vocabulary_.pieces(ids_);
    for (size_t i = 0; i < pieces.size(); ++i)
      if (pieces[i] == word) found.push_back(i);
    return found;
  }

  // Returns the index of the first piece of the word. Tries the word exactly as written, then its
  // first occurrence without punctuation, then the word whose number `word` is.
  std::optional<size_t> find(const std::string& word) const {
    const auto same = std::ranges::find(side_.labels, word);
    if (same != side_.labels.end())
      return first_piece(static_cast<size_t>(same - side_.labels.begin()));
    const std::vector<size_t> all = occurrences(word);
    if (!all.empty()) return all.front();
    const size_t number = number_in(word);
    if (number == 0 || number > side_.labels.size()) return std::nullopt;
    return first_piece(number - 1);
  }

 private:
  size_t first_piece(size_t word) const {
    const auto first = std::ranges::find(side_.words, static_cast<int>(word));
    return static_cast<size_t>(first - side_.words.begin());
  }

  // Searches the word in the text of the sentence, also inside other words. Returns the index of
  // the piece in which each occurrence begins.
  std::vector<size_t> in_text(const std::string& word) const {
    const std::string text = vocabulary_.decode(ids_), sought = nfc(word);
    std::vector<size_t> found;
    size_t piece = 0;
    for (size_t at = text.find(sought); at < text.size(); at = text.find(sought, at + 1)) {
      while (piece + 1 < ids_.size() && vocabulary_.decode(ids_.first(piece + 1)).size() <= at)
        ++piece;
      found.push_back(piece);
    }
    return found;
  }

  const Vocabulary& vocabulary_;
  std::span<const int32_t> ids_;
  PictureSide side_;
};

}  // namespace

FoundWord find_word(const Vocabulary& vocabulary, std::span<const int32_t> ids,
                    const std::string& word) {
  const WordSearch words(vocabulary, ids);
  const size_t sign = word.rfind('#');
  const size_t number = sign == word.npos ? 0 : number_in(word.substr(sign + 1));
  if (const auto found = words.find(word); found || number == 0 || sign == 0) return {found};
  const std::vector<size_t> all = words.occurrences(word.substr(0, sign));
  if (number > all.size()) return {std::nullopt, all.size()};
  return {all[number - 1], all.size()};
}

WordExplanation::WordExplanation(const ModelBundle& package, const ExplainedPair& pair,
                                 const ExplainedWord& asked)
    : pair_(pair), asked_(asked) {
  AttentionRow row = find(package);
  row.layer = std::max<int64_t>(asked.layer, 0);
  row.head = std::max<int64_t>(asked.head, 0);
  found_ = explain_row(package, pair.source, pair.target, row);
}

// Finds the kind of attention and the row of the requested word. Stores the word as the sentence
// has it.
AttentionRow WordExplanation::find(const ModelBundle& package) {
  struct Place {
    const char* kind;
    const Vocabulary& vocabulary;
    std::span<const int32_t> asking;
  };
  const std::vector<int32_t> read = read_before(pair_.target, package.model->frame());
  const bool multi_head = mechanism_of(package.config).empty();
  std::vector<Place> places;
  if (multi_head) places.push_back({"encoder", package.source, pair_.source});
  places.push_back({"cross", package.target, pair_.target});
  if (multi_head && heads_of(package.config, "decoder").layers > 0)
    places.push_back({"decoder", package.target, read});
  std::vector<std::string> there;
  for (const Place& place : places) {
    if (asked_.kind.empty() ? place.kind == std::string("decoder") : asked_.kind != place.kind)
      continue;
    const PictureSide side = picture_side(place.vocabulary, place.asking, PictureUnit::words);
    there.push_back(joined(side.labels));
    const FoundWord word = find_word(place.vocabulary, place.asking, asked_.word);
    there.back() += word.note(asked_.word);
    const std::optional<size_t>& piece = word.piece;
    if (!piece) continue;
    const std::vector<std::string> all = place.vocabulary.pieces(place.asking);
    for (size_t i = 0; i < all.size(); ++i)
      if (side.words[i] == side.words[*piece]) parts_.push_back(all[i]);
    asked_.word = side.labels[static_cast<size_t>(side.words[*piece])];
    return {.kind = place.kind, .row = static_cast<int64_t>(*piece)};
  }
  check(!there.empty(), ExitCode::usage, "`kind` ", asked_.kind,
        ": this model has no such attention");
  fail(ExitCode::usage, "`explain`: there is no word '", asked_.word,
       "' in: ", fmt::format("{}", fmt::join(there, " | ")),
       "; give a word, the number of a word from 1, or the n-th occurrence of one: dog#2");
}

std::string WordExplanation::title() const {
  const std::string word = "\"" + label(asked_.word) + "\"";
  const auto& [kind, layer, head, row] = found_.row;
  const std::string& mechanism = found_.mechanism;
  const std::string what = kind == "cross" ? "What is read of the source to write " + word
                                           : "What " + word + " reads of the words " +
                                                 (kind == "encoder" ? "around it" : "before it");
  std::string text = what + "\n" + (mechanism.empty() ? kind + " attention" : mechanism);
  if (mechanism.empty()) {
    text += fmt::format(", layer {}, head {}", layer, head);
    if (asked_.layer < 0 || asked_.head < 0) text += " (choose others by layer and head)";
  }
  if (parts_.size() > 1)
    text += fmt::format("\nThe word has pieces {}; this is {}. Name a piece to see another.",
                        joined(parts_), label(found_.asking[static_cast<size_t>(row)]));
  return text;
}

std::string WordExplanation::text(const TerminalOptions& terminal) const {
  return title() + "\n\n" + terminal_steps(found_.steps, found_.pieces, terminal);
}

std::string WordExplanation::json() const {
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
