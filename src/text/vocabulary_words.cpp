#include <algorithm>

#include "base/ascii.h"
#include "text/vocabulary_table.h"
#include "text/word_breaks.h"

namespace fovea {
namespace {

// Returns whether pieces are parts of the text, so that their offsets in the text are known.
bool is_spelled(Segmentation segmentation) {
  return segmentation == Segmentation::sentencepiece || segmentation == Segmentation::characters ||
         segmentation == Segmentation::bytes;
}

}  // namespace

std::vector<int> Vocabulary::words_of(std::span<const int32_t> ids) const {
  const std::vector<PieceText> texts = table_->piece_text(ids);
  std::vector<size_t> starts, breaks;
  if (is_spelled(cut())) {
    SpelledText spelled = spell(cut(), texts);
    breaks = word_breaks(spelled.text);
    starts = std::move(spelled.starts);
  }
  std::vector<int> words(ids.size(), 0);
  auto next = breaks.begin();
  for (size_t i = 1; i < ids.size(); ++i) {
    bool begins = begins_word(cut(), texts[i - 1], texts[i]);
    while (next != breaks.end() && *next < starts[i]) ++next;
    if (next != breaks.end() && *next == starts[i]) begins = true, ++next;
    words[i] = words[i - 1] + begins;
  }
  return words;
}

namespace {

// For each piece, the index of the word in which its text starts. Blanks at the start of a piece
// are skipped. Pieces without text at the end, such as </s>, get the index words.size().
std::vector<int> words_at_starts(std::string_view text, std::span<const std::string_view> words,
                                 std::span<const size_t> starts) {
  std::vector<int> numbers;
  size_t w = 0;
  for (const size_t start : starts) {
    size_t at = start;
    while (at < text.size() && is_ascii_blank(static_cast<unsigned char>(text[at]))) ++at;
    while (w < words.size() && words[w].data() + words[w].size() <= text.data() + at) ++w;
    numbers.push_back(static_cast<int>(w));
  }
  return numbers;
}

// For each piece, the index of the word in which it ends. A piece may begin with the blank before
// its word, but it ends inside the word.
std::vector<int> words_at_ends(std::string_view text, std::span<const std::string_view> words,
                               const std::vector<SentencePieceModel::Token>& tokens) {
  const auto end_of = [&](size_t w) {
    return static_cast<size_t>(words[w].data() - text.data()) + words[w].size();
  };
  std::vector<int> numbers;
  size_t w = 0;
  for (const auto& token : tokens) {
    while (w + 1 < words.size() && end_of(w) < token.end) ++w;
    numbers.push_back(static_cast<int>(w));
  }
  return numbers;
}

std::vector<size_t> starts_of(const std::vector<SentencePieceModel::Token>& tokens) {
  std::vector<size_t> starts;
  size_t end = 0;
  for (const auto& token : tokens) {
    starts.push_back(end);
    end = token.end;
  }
  return starts;
}

std::vector<int> glued_words(const std::vector<std::string_view>& pieces) {
  std::vector<int> numbers;
  int word = 0;
  for (size_t i = 0; i < pieces.size(); ++i) {
    numbers.push_back(word);
    if (!pieces[i].ends_with(kGlue) || i + 1 == pieces.size()) ++word;
  }
  numbers.push_back(word);
  return numbers;
}

}  // namespace

std::vector<int> Vocabulary::text_words_of(std::span<const int32_t> ids) const {
  std::vector<int> words = words_of(ids);
  if (!is_spelled(cut())) {
    int controls = 0;  // before </s>; words_of() numbers each of them
    for (size_t i = 0; i < ids.size(); ++i) {
      words[i] -= controls;
      controls += ids[i] >= kSpecials && table_->piece_text(ids[i]).role == PieceRole::control;
    }
    return words;
  }
  const SpelledText spelled = spell(cut(), table_->piece_text(ids));
  const std::vector<size_t> breaks = word_breaks(spelled.text);
  const auto is_control = [&](int32_t id) {
    return id >= kSpecials && table_->piece_text(id).role == PieceRole::control;
  };
  if (breaks.empty() && std::ranges::none_of(ids, is_control)) return words;
  return words_at_starts(spelled.text, text_words(spelled.text, breaks), spelled.starts);
}

std::vector<int> Vocabulary::words_in(std::string_view line) const {
  const std::string text =
      cut() == Segmentation::sentencepiece ? break_runs(prepare(line)) : prepare(line);
  if (cut() == Segmentation::subwords || (cut() == Segmentation::pieces && table_->imported)) {
    const std::vector<std::string> pieces = spelt(line);
    return glued_words({pieces.begin(), pieces.end()});
  }
  if (cut() == Segmentation::pieces) return glued_words(split_words(text));
  const std::vector<size_t> breaks = word_breaks(text);
  const std::vector<std::string_view> words = text_words(text, breaks);
  std::vector<int> numbers;
  if (table_->has_tokens()) {
    const auto tokens = table_->tokens(table_->blanks(text));
    numbers = breaks.empty() ? words_at_ends(text, words, tokens)
                             : words_at_starts(text, words, starts_of(tokens));
    const int last = std::max(static_cast<int>(words.size()) - 1, 0);
    for (int& number : numbers) number = std::min(number, last);
    numbers.push_back(static_cast<int>(words.size()));
    return numbers;
  }
  for (size_t w = 0; w < words.size(); ++w) {
    const bool touches = w > 0 && words[w - 1].end() == words[w].begin();
    const bool blank_before = cut() == Segmentation::characters && w > 0 && !touches;
    numbers.insert(numbers.end(), split(cut(), words[w]).size() + blank_before,
                   static_cast<int>(w));
  }
  numbers.push_back(static_cast<int>(words.size()));
  return numbers;
}

std::vector<std::string> Vocabulary::words(std::span<const int32_t> ids) const {
  const std::vector<int> word = words_of(ids);
  std::vector<std::string> result;
  for (size_t i = 0, end = 0; i < ids.size(); i = end) {
    while (end < ids.size() && word[end] == word[i]) ++end;
    const bool control = table_->piece_text(ids[i]).role == PieceRole::control;
    result.push_back(control ? std::string(name(ids[i])) : decode(ids.subspan(i, end - i)));
  }
  return result;
}

// The words that words_of(encode(line)) numbers, as they are in the line.
std::vector<std::string> Vocabulary::written_words(std::string_view line) const {
  std::vector<size_t> breaks = word_breaks(line);
  std::string text(line);
  if (!breaks.empty() && table_->has_tokens() && is_spelled(cut())) {
    text = break_runs(prepare(line));
    breaks = word_breaks(text);
    const std::vector<size_t> starts = starts_of(table_->tokens(table_->blanks(text)));
    std::erase_if(breaks, [&](size_t at) { return !std::ranges::binary_search(starts, at); });
  }
  if (cut() == Segmentation::pieces || cut() == Segmentation::subwords) breaks.clear();
  const std::vector<std::string_view> words = text_words(text, breaks);
  return {words.begin(), words.end()};
}

std::vector<std::string> Vocabulary::words(std::span<const int32_t> ids,
                                           std::string_view line) const {
  std::vector<std::string> result = words(ids);
  const std::vector<std::string> written = written_words(line);
  const std::vector<int> word = words_of(ids);
  std::vector<bool> unknown(result.size()), control(result.size());
  for (size_t i = 0; i < ids.size(); ++i) {
    unknown[word[i]] = unknown[word[i]] || ids[i] == kUnk;
    control[word[i]] = table_->piece_text(ids[i]).role == PieceRole::control;
  }
  const auto controls = static_cast<size_t>(std::ranges::count(control, true));
  if (written.size() + controls != result.size()) return result;  // truncated ids, or another line
  for (size_t at = 0, next = 0; at < result.size(); ++at) {
    if (control[at]) continue;
    if (unknown[at]) result[at] = written[next];
    ++next;
  }
  return result;
}

}  // namespace fovea
