#include "text/pieces.h"

#include <unicode/uchar.h>

#include <algorithm>

#include "base/utf8.h"
#include "text/word_breaks.h"

namespace fovea {
namespace {

// "▁" made " ".
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

// Whether no blank stands between two words that end and begin so.
bool touch(char32_t before, char32_t after) {
  return is_wide_punctuation(before) || is_wide_punctuation(after) ||
         (is_unspaced(before) && is_unspaced(after));
}

// With blanks between pieces unless one is glued to the next.
std::string join_words(Cut cut, const std::vector<Shown>& pieces) {
  std::string text;
  bool glued = true;
  for (const Shown& shown : pieces) {
    if (shown.role == Role::control) continue;
    std::string_view piece = shown.role == Role::unknown ? kUnknown : shown.piece;
    const bool touches =
        cut != Cut::pieces && touch(last_code_point(text), first_code_point(piece));
    if (!glued && !touches) text += ' ';
    glued = cut == Cut::pieces && piece.ends_with(kGlue);
    if (glued) piece.remove_suffix(kGlue.size());
    text += piece;
  }
  return text;
}

}  // namespace

bool is_ascii_blank(char32_t c) { return c == ' ' || ('\t' <= c && c <= '\r'); }

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

std::vector<std::string_view> split_words(std::string_view line) {
  std::vector<std::string_view> words;
  for (size_t at = 0; at < line.size();) {
    size_t end = at;
    while (end < line.size() && !is_ascii_blank(static_cast<unsigned char>(line[end]))) ++end;
    if (end > at) words.push_back(line.substr(at, end - at));
    at = end + 1;
  }
  return words;
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

std::string prepared(Cut cut, std::string_view line) {
  const std::string text = canonical(line);
  if (cut != Cut::tokens) return text;
  std::string lower;
  lower.reserve(text.size());
  for (const char32_t c : code_points(text))
    append_utf8(lower, static_cast<char32_t>(u_tolower(static_cast<UChar32>(c))));
  return lower;
}

std::vector<std::string_view> split(Cut cut, std::string_view text) {
  if (cut == Cut::characters) return split_characters(text);
  if (cut == Cut::pieces) return split_words(text);
  return cut == Cut::tokens ? split_tokens(text) : text_words(text);
}

SpelledText spell(const std::vector<Shown>& pieces) {
  SpelledText spelled;
  for (const Shown& shown : pieces) {
    spelled.starts.push_back(spelled.text.size());
    if (shown.role == Role::text) spelled.text += with_blanks(shown.piece);
    if (shown.role == Role::unknown) spelled.text += kUnknown;
    if (shown.role == Role::byte) spelled.text += static_cast<char>(shown.byte);
  }
  return spelled;
}

std::string join(Cut cut, const std::vector<Shown>& pieces) {
  const bool words = cut == Cut::words || cut == Cut::pieces || cut == Cut::tokens;
  std::string text = words ? join_words(cut, pieces) : spell(pieces).text;
  for (char& c : text)
    if (c == '\n' || c == '\r') c = ' ';
  const size_t begin = std::min(text.find_first_not_of(' '), text.size());
  text = text.substr(begin, text.find_last_not_of(' ') + 1 - begin);
  return is_utf8(text) ? text : replace_invalid_utf8(text);
}

bool begins_word(Cut cut, const Shown& before, const Shown& piece) {
  if (before.role == Role::control || piece.role == Role::control) return true;
  switch (cut) {
    case Cut::words:
    case Cut::tokens:
      return true;
    case Cut::pieces:
      return before.role == Role::unknown || !before.piece.ends_with(kGlue);
    default:
      return piece.role == Role::text && piece.piece.starts_with(kBlank);
  }
}

}  // namespace fovea
