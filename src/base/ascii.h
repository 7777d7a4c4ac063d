#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace fovea {

// Returns the text with A to Z in lower case. Other bytes do not change.
inline std::string lower_ascii(std::string_view text) {
  std::string result(text);
  for (char& c : result)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c + ('a' - 'A'));
  return result;
}

constexpr bool is_ascii_letter(char32_t c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}
constexpr bool is_ascii_alnum(char32_t c) { return is_ascii_letter(c) || (c >= '0' && c <= '9'); }

// Returns whether `list`, such as " dog cat ", contains the word. REQUIRES: a blank before and
// after each word of the list.
inline bool list_has(std::string_view list, std::string_view word) {
  return list.find(" " + std::string(word) + " ") != std::string_view::npos;
}

// True for space, tab, LF, VT, FF and CR.
constexpr bool is_ascii_blank(char32_t c) { return c == ' ' || ('\t' <= c && c <= '\r'); }

// Splits a line in any script at ASCII blanks. Other Unicode spaces count as characters of a word.
// The views point into `line`. For scripts without blanks between words, use text_words().
inline std::vector<std::string_view> split_words(std::string_view line) {
  std::vector<std::string_view> words;
  for (size_t at = 0; at < line.size();) {
    size_t end = at;
    while (end < line.size() && !is_ascii_blank(static_cast<unsigned char>(line[end]))) ++end;
    if (end > at) words.push_back(line.substr(at, end - at));
    at = end + 1;
  }
  return words;
}

}  // namespace fovea
