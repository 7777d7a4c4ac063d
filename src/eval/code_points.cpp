#include "eval/code_points.h"

#include <unicode/ustring.h>
#include <unicode/utf16.h>

#include <algorithm>

#include "base/check.h"
#include "base/utf8.h"

namespace fovea {

Characters characters_of(std::string_view utf8) {
  Characters text;
  text.reserve(utf8.size());
  for (char32_t c : code_points(utf8)) text.push_back(c);
  return text;
}

std::string utf8_of(std::u32string_view characters) {
  std::string utf8;
  utf8.reserve(characters.size());
  for (char32_t c : characters) append_utf8(utf8, c);
  return utf8;
}

bool is_blank(char32_t c) {
  if (c < 0x80) return c == ' ' || (c >= 0x09 && c <= 0x0d) || (c >= 0x1c && c <= 0x1f);
  return c == 0x85 || c == 0xa0 || c == 0x1680 || (c >= 0x2000 && c <= 0x200a) || c == 0x2028 ||
         c == 0x2029 || c == 0x202f || c == 0x205f || c == 0x3000;
}

Characters lower_case(const Characters& text) {
  std::u16string units;
  for (char32_t c : text) {
    char16_t pair[2];
    size_t size = 0;
    U16_APPEND_UNSAFE(pair, size, c);
    units.append(pair, size);
  }
  std::u16string lower(units.size() + 16, u'\0');
  for (;;) {
    UErrorCode status = U_ZERO_ERROR;
    int32_t size = u_strToLower(lower.data(), static_cast<int32_t>(lower.size()), units.data(),
                                static_cast<int32_t>(units.size()), "", &status);
    bool fits = size <= static_cast<int32_t>(lower.size());
    lower.resize(static_cast<size_t>(size));
    if (fits) {
      check(U_SUCCESS(status), ExitCode::unexpected, "lower-casing: ", u_errorName(status));
      break;
    }
  }
  Characters result;
  result.reserve(text.size());
  for (size_t i = 0; i < lower.size();) {
    char32_t c;
    U16_NEXT_UNSAFE(lower, i, c);
    result.push_back(c);
  }
  return result;
}

Characters without_trailing_blanks(Characters text) {
  while (!text.empty() && is_blank(text.back())) text.pop_back();
  return text;
}

std::vector<std::u32string_view> words_of(std::u32string_view text) {
  std::vector<std::u32string_view> words;
  for (auto at = text.begin(); at != text.end();) {
    auto first = std::find_if_not(at, text.end(), is_blank);
    at = std::find_if(first, text.end(), is_blank);
    if (first != at) words.emplace_back(first, at);
  }
  return words;
}

}  // namespace fovea
