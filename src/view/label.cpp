#include "view/label.h"

#include <unicode/uchar.h>

#include <algorithm>
#include <cstdio>

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

// Format characters that languages need inside words. All others appear as their numbers.
bool joiner(UChar32 c) { return c == 0x200C || c == 0x200D; }

// Tag characters, which spell the flags of parts of countries. They are format characters, too.
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

int break_class(UChar32 c) { return u_getIntPropertyValue(c, UCHAR_GRAPHEME_CLUSTER_BREAK); }

// Whether c continues the letter that ends in `last`. `flags` is the number of its regional
// indicators.
bool continues(UChar32 last, UChar32 c, int flags) {
  const int before = break_class(last), now = break_class(c);
  if (now == U_GCB_EXTEND || now == U_GCB_ZWJ || now == U_GCB_SPACING_MARK) return true;
  if (before == U_GCB_ZWJ) return u_hasBinaryProperty(c, UCHAR_EXTENDED_PICTOGRAPHIC);
  if (now == U_GCB_REGIONAL_INDICATOR) return before == now && flags % 2 == 1;
  if (before == U_GCB_L)
    return now == U_GCB_L || now == U_GCB_V || now == U_GCB_LV || now == U_GCB_LVT;
  if (before == U_GCB_LV || before == U_GCB_V) return now == U_GCB_V || now == U_GCB_T;
  return (before == U_GCB_LVT || before == U_GCB_T) && now == U_GCB_T;
}

// The end of the letter that begins at `at`.
size_t letter_end(std::string_view text, size_t at) {
  UChar32 last = next(text, at);
  int flags = break_class(last) == U_GCB_REGIONAL_INDICATOR;
  while (at < text.size()) {
    size_t after = at;
    const UChar32 c = next(text, after);
    if (!continues(last, c, flags)) break;
    flags += break_class(c) == U_GCB_REGIONAL_INDICATOR;
    last = c;
    at = after;
  }
  return at;
}

// Terminals draw an emoji sequence as one wide sign, so a letter has at most two columns.
int letter_columns(std::string_view letter) {
  int width = 0;
  for (size_t at = 0; at < letter.size();) {
    const auto c = static_cast<char32_t>(next(letter, at));
    width = c == 0xFE0F ? 2 : width + display_width(c);
  }
  return std::min(width, 2);
}

// The visible form of a letter. A mark without a base letter gets a dotted circle. The result may
// have several letters (\u{202E}).
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
  std::string text;
  size_t cut = 0;  // length of the longest prefix that leaves space for …
  int width = 0;
  for (size_t at = 0; at < word.size();) {
    // No real letter is longer than this. The limit bounds the look-ahead.
    const std::string_view ahead = word.substr(0, std::min(word.size(), at + 256));
    const size_t end = letter_end(ahead, at);
    for (const std::string& letter : letters(shown(word.substr(at, end - at)))) {
      width += letter_columns(letter);
      if (width > columns_allowed) return text.substr(0, cut) + "…";
      text += letter;
      if (width < columns_allowed) cut = text.size();
    }
    at = end;
  }
  return text;
}

std::vector<std::string> letters(std::string_view label) {
  std::vector<std::string> all;
  for (size_t at = 0; at < label.size();) {
    const size_t end = letter_end(label, at);
    all.emplace_back(label.substr(at, end - at));
    at = end;
  }
  return all;
}

int columns(std::string_view label) {
  int width = 0;
  for (const std::string& letter : letters(label)) width += letter_columns(letter);
  return width;
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
