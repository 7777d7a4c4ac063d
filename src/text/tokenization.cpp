#include "text/tokenization.h"

#include <unicode/uchar.h>

#include <algorithm>

#include "base/ascii.h"
#include "base/utf8.h"
#include "text/foreign_segmentation.h"
#include "text/word_breaks.h"

namespace fovea {
namespace {

// Replaces "▁" by " ".
std::string with_blanks(std::string_view text) {
  std::string result;
  result.reserve(text.size());
  for (size_t at = 0; at < text.size();) {
    const bool blank = text.substr(at, kBlank.size()) == kBlank;
    result += blank ? ' ' : text[at];
    at += blank ? kBlank.size() : 1;
  }
  return result;
}

// Returns whether two words are written without a blank between them, if the first word ends with
// `before` and the second begins with `after`.
bool join_without_blank(char32_t before, char32_t after) {
  return is_wide_punctuation(before) || is_wide_punctuation(after) ||
         (is_unspaced(before) && is_unspaced(after));
}

bool is_glued(Segmentation segmentation) {
  return segmentation == Segmentation::pieces || segmentation == Segmentation::subwords;
}

// Joins words by blanks. Joins a piece that ends with "@@" to the next piece without a blank.
std::string join_words(Segmentation segmentation, const std::vector<PieceText>& pieces) {
  std::string text;
  bool glued = true;
  for (const PieceText& piece_text : pieces) {
    if (piece_text.role == PieceRole::control) continue;
    std::string_view piece = piece_text.role == PieceRole::unknown ? kUnknown : piece_text.piece;
    const bool joined = !is_glued(segmentation) &&
                        join_without_blank(last_code_point(text), first_code_point(piece));
    if (!glued && !joined) text += ' ';
    glued = is_glued(segmentation) && piece.ends_with(kGlue);
    if (glued) piece.remove_suffix(kGlue.size());
    text += piece;
  }
  return text;
}

}  // namespace

std::string canonical(std::string_view line) {
  const bool ascii = std::all_of(line.begin(), line.end(), [](char c) { return c > 0; });
  if (ascii) return std::string(line);
  return with_blanks(nfc(line));
}

std::string plain_blanks(std::string text) {
  if (std::ranges::all_of(text, [](char c) { return c >= 0; })) return text;
  const std::string original = text;
  const CodePoints points = code_points(original);
  for (auto c = points.begin(); c != points.end(); ++c)
    if (*c >= 0x80 && u_isUWhiteSpace(static_cast<UChar32>(*c)))
      std::fill_n(text.begin() + static_cast<ptrdiff_t>(c.offset()), c.length(), ' ');
  return text;
}

std::string break_runs(std::string text) {
  constexpr size_t kLongest = 16'384;
  if (text.size() <= kLongest) return text;
  std::string broken;
  size_t run = 0;
  for (const char c : text) {
    const bool continues = (c & 0xC0) == 0x80;
    run = c == ' ' ? 0 : run + 1;
    if (run > kLongest && !continues) {
      broken += ' ';
      run = 1;
    }
    broken += c;
  }
  return broken;
}

std::vector<std::string_view> split_characters(std::string_view line) {
  std::vector<std::string_view> characters;
  for (const std::string_view word : split_words(line)) {
    if (!characters.empty()) characters.push_back(kBlank);
    const CodePoints points = code_points(word);
    for (auto c = points.begin(); c != points.end(); ++c)
      characters.push_back(word.substr(c.offset(), c.length()));
  }
  return characters;
}

std::vector<std::string_view> split_tokens(std::string_view line) {
  constexpr std::string_view kOpen = "([{\"`", kClose = ".,;:!?)]}\"'`";
  std::vector<std::string_view> tokens;
  for (std::string_view word : text_words(line)) {
    for (; word.size() > 1 && kOpen.find(word.front()) != kOpen.npos; word.remove_prefix(1))
      tokens.push_back(word.substr(0, 1));
    size_t end = word.size();
    while (end > 1 && kClose.find(word[end - 1]) != kClose.npos) --end;
    tokens.push_back(word.substr(0, end));
    for (; end < word.size(); ++end) tokens.push_back(word.substr(end, 1));
  }
  return tokens;
}

std::string prepared(Segmentation segmentation, std::string_view line) {
  const std::string text = canonical(line);
  if (segmentation != Segmentation::tokens) return text;
  std::string lower;
  lower.reserve(text.size());
  for (const char32_t c : code_points(text))
    append_utf8(lower, static_cast<char32_t>(u_tolower(static_cast<UChar32>(c))));
  return lower;
}

std::vector<std::string_view> split(Segmentation segmentation, std::string_view text) {
  if (segmentation == Segmentation::characters) return split_characters(text);
  if (segmentation == Segmentation::pieces) return split_words(text);
  return segmentation == Segmentation::tokens ? split_tokens(text) : text_words(text);
}

namespace {

// Appends the characters that the bytes of consecutive byte pieces form, and clears `bytes`.
void add_bytes(SpelledText& spelled, std::string& bytes) {
  for (size_t at = 0; at < bytes.size();) {
    const CodePoint c = decode_utf8(bytes, at);
    for (int i = 0; i < c.length; ++i, ++at) {
      spelled.starts.push_back(spelled.text.size());
      if (c.valid) spelled.text += bytes[at];
    }
  }
  bytes.clear();
}

// The text of pieces whose characters are bytes. Bytes that form no character are omitted.
SpelledText spell_bytes(const std::vector<PieceText>& pieces) {
  std::string bytes;
  std::vector<size_t> starts;
  for (const PieceText& piece_text : pieces) {
    starts.push_back(bytes.size());
    if (piece_text.role == PieceRole::text) bytes += bytes_of_characters(piece_text.piece);
    if (piece_text.role == PieceRole::unknown) bytes += kUnknown;
  }
  SpelledText spelled;
  auto next = starts.begin();
  for (size_t at = 0; at < bytes.size();) {
    const CodePoint c = decode_utf8(bytes, at);
    const auto length = static_cast<size_t>(c.length);
    for (; next != starts.end() && *next < at + length; ++next)
      spelled.starts.push_back(spelled.text.size() + (c.valid ? *next - at : 0));
    if (c.valid) spelled.text.append(bytes, at, length);
    at += length;
  }
  spelled.starts.resize(starts.size(), spelled.text.size());
  return spelled;
}

}  // namespace

SpelledText spell(Segmentation segmentation, const std::vector<PieceText>& pieces) {
  if (segmentation == Segmentation::bytes) return spell_bytes(pieces);
  SpelledText spelled;
  std::string bytes;
  for (const PieceText& piece_text : pieces) {
    if (piece_text.role == PieceRole::byte) {
      bytes += static_cast<char>(piece_text.byte);
      continue;
    }
    add_bytes(spelled, bytes);
    spelled.starts.push_back(spelled.text.size());
    if (piece_text.role == PieceRole::text) spelled.text += with_blanks(piece_text.piece);
    if (piece_text.role == PieceRole::unknown) spelled.text += kUnknown;
  }
  add_bytes(spelled, bytes);
  return spelled;
}

std::string join(Segmentation segmentation, const std::vector<PieceText>& pieces) {
  const bool words = segmentation == Segmentation::words || is_glued(segmentation) ||
                     segmentation == Segmentation::tokens;
  std::string text = words ? join_words(segmentation, pieces) : spell(segmentation, pieces).text;
  for (char& c : text)
    if (c == '\n' || c == '\r') c = ' ';
  const size_t begin = std::min(text.find_first_not_of(' '), text.size());
  return text.substr(begin, text.find_last_not_of(' ') + 1 - begin);
}

bool begins_word(Segmentation segmentation, const PieceText& before, const PieceText& piece) {
  if (before.role == PieceRole::control || piece.role == PieceRole::control) return true;
  switch (segmentation) {
    case Segmentation::words:
    case Segmentation::tokens:
      return true;
    case Segmentation::pieces:
    case Segmentation::subwords:
      return before.role == PieceRole::unknown || !before.piece.ends_with(kGlue);
    case Segmentation::bytes:
      return piece.role == PieceRole::text && piece.piece.starts_with(kByteBlank);
    default:
      return piece.role == PieceRole::text && piece.piece.starts_with(kBlank);
  }
}

}  // namespace fovea
