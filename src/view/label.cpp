#include "view/label.h"

#include <unicode/uchar.h>

#include <algorithm>
#include <cstdio>

#include "base/icu_breaks.h"
#include "base/utf8.h"

namespace fovea {
namespace {

constexpr int kMarksPerLetter = 6;  // no language needs more; an attacker could cover the
                                    // neighbouring lines
constexpr int kPartsPerLetter = 12;

UChar32 next(std::string_view text, size_t& at) {
  const CodePoint c = decode_utf8(text, at);
  at += static_cast<size_t>(c.length);
  return static_cast<UChar32>(c.value);
}

// Whether c is a format character that some languages need inside words. Labels show all other
// format characters as their numbers.
bool joiner(UChar32 c) { return c == 0x200C || c == 0x200D; }

// Whether c is a tag character. Tag characters are format characters, too. They spell the flags of
// parts of countries.
bool tag(UChar32 c) { return c >= 0xE0020 && c <= 0xE007F; }

std::string visible(UChar32 c) {
  std::string text;
  if (c < 0x20) {
    append_utf8(text, static_cast<char32_t>(0x2400 + c));  // ␀ … ␟
  } else if (c == 0x7F) {
    append_utf8(text, 0x2421);  // ␡
  } else {
    char number[16];
    std::snprintf(number, sizeof number, "\\u{%X}", static_cast<unsigned>(c));
    text = number;
  }
  return text;
}

bool hidden(UChar32 c) {
  switch (u_charType(c)) {
    case U_CONTROL_CHAR:
    case U_LINE_SEPARATOR:
    case U_PARAGRAPH_SEPARATOR:
    case U_PRIVATE_USE_CHAR:
    case U_UNASSIGNED:
    case U_SURROGATE:
      return true;
    case U_FORMAT_CHAR:
      return !joiner(c) && !tag(c);
    default:
      return false;
  }
}

// Returns the number of terminal columns of a letter. It is at most two, because terminals draw an
// emoji sequence as one wide sign.
int letter_columns(std::string_view letter) {
  int width = 0;
  for (size_t at = 0; at < letter.size();) {
    const auto c = static_cast<char32_t>(next(letter, at));
    width = c == 0xFE0F ? 2 : width + display_width(c);
  }
  return std::min(width, 2);
}

// Returns the visible form of a letter. If the letter is a mark without a base letter, it gets a
// dotted circle. The result may have several letters, for example the text \u{202E}.
std::string shown(std::string_view letter) {
  std::string text;
  int marks = 0, parts = 0;
  for (size_t at = 0; at < letter.size() && parts < kPartsPerLetter;) {
    const UChar32 c = next(letter, at);
    const bool mark = U_GET_GC_MASK(c) & U_GC_M_MASK;
    if (mark && ++marks > kMarksPerLetter) continue;
    if (mark && text.empty()) append_utf8(text, 0x25CC);
    ++parts;
    if (hidden(c))
      text += visible(c);
    else
      append_utf8(text, static_cast<char32_t>(c == 0xA0 ? ' ' : c));
  }
  return text;
}

}  // namespace

std::string label(std::string_view word, int columns_allowed) {
  // This limit on the bytes bounds the time. Real text has fewer bytes per column.
  const size_t most_bytes = 256 * static_cast<size_t>(columns_allowed);
  std::string safe, text;
  for (const std::string& letter : letters(word.substr(0, most_bytes))) safe += shown(letter);
  size_t cut = 0;  // length of the longest prefix after which … still fits
  int width = 0;
  for (const std::string& letter : letters(safe)) {
    width += letter_columns(letter);
    if (width > columns_allowed) return text.substr(0, cut) + "…";
    text += letter;
    if (width < columns_allowed) cut = text.size();
  }
  return word.size() <= most_bytes ? text : text.substr(0, cut) + "…";
}

std::vector<std::string> letters(std::string_view label) {
  std::vector<std::string> all;
  size_t begin = 0;
  for (const size_t end : grapheme_ends(label)) {
    all.emplace_back(label.substr(begin, end - begin));
    begin = end;
  }
  return all;
}

int columns(std::string_view label) {
  int width = 0;
  for (const std::string& letter : letters(label)) width += letter_columns(letter);
  return width;
}

std::vector<std::string> wrap_columns(std::string_view text, int width, size_t limit) {
  width = std::max(width, 8);
  std::vector<std::string> lines;
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find(' ', at), text.size());
    const std::string word = label(text.substr(at, end - at), width);
    at = end + 1;
    if (word.empty()) continue;
    if (!lines.empty() && columns(lines.back()) + 1 + columns(word) <= width) {
      lines.back() += " " + word;
    } else if (lines.size() < limit) {
      lines.push_back(word);
    } else {
      lines.back() = label(lines.back(), width - 1) + "…";
      break;
    }
  }
  return lines;
}

bool right_to_left(std::string_view label) {
  for (size_t at = 0; at < label.size();) {
    const UCharDirection d = u_charDirection(next(label, at));
    if (d == U_RIGHT_TO_LEFT || d == U_RIGHT_TO_LEFT_ARABIC || d == U_ARABIC_NUMBER) return true;
  }
  return false;
}

bool joined_script(std::string_view label) {
  for (size_t at = 0; at < label.size();) {
    const UChar32 c = next(label, at);
    const int joining = u_getIntPropertyValue(c, UCHAR_JOINING_TYPE);
    const bool joins = joining == U_JT_DUAL_JOINING || joining == U_JT_RIGHT_JOINING;
    const int category = u_getIntPropertyValue(c, UCHAR_INDIC_SYLLABIC_CATEGORY);
    const bool indic = category != U_INSC_OTHER && c >= 0x0900 && (c < 0x2000 || c >= 0xA000);
    if (joins || indic) return true;
  }
  return false;
}

std::string xml(std::string_view label) {
  std::string text;
  text.reserve(label.size());
  for (char c : label) switch (c) {
      case '&':
        text += "&amp;";
        break;
      case '<':
        text += "&lt;";
        break;
      case '>':
        text += "&gt;";
        break;
      case '"':
        text += "&quot;";
        break;
      case '\'':
        text += "&#39;";
        break;
      default:
        text += c;
    }
  return text;
}

}  // namespace fovea
