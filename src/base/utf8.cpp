#include "base/utf8.h"

#include <unicode/normalizer2.h>
#include <unicode/uchar.h>
#include <unicode/unistr.h>

#include <algorithm>

#include "base/check.h"

namespace fovea {
namespace {

// What a lead byte says: the length of its sequence, and the range of the second byte. The range
// excludes overlong forms, surrogates and values beyond U+10FFFF (Unicode, table 3-7). If size is
// 0, the byte is not a lead byte.
struct LeadByte {
  int size;
  uint8_t low, high;
};

constexpr LeadByte lead(uint8_t b) {
  if (b < 0x80) return {1, 0, 0};
  if (b < 0xC2) return {0, 0, 0};
  if (b < 0xE0) return {2, 0x80, 0xBF};
  if (b == 0xE0) return {3, 0xA0, 0xBF};
  if (b == 0xED) return {3, 0x80, 0x9F};
  if (b < 0xF0) return {3, 0x80, 0xBF};
  if (b == 0xF0) return {4, 0x90, 0xBF};
  if (b < 0xF4) return {4, 0x80, 0xBF};
  if (b == 0xF4) return {4, 0x80, 0x8F};
  return {0, 0, 0};
}

bool is_ascii(char c) { return static_cast<uint8_t>(c) < 0x80; }

}  // namespace

CodePoint decode_utf8(std::string_view text, size_t at) {
  const auto byte = [&](size_t i) { return static_cast<uint8_t>(text[i]); };
  const LeadByte l = lead(byte(at));
  if (l.size == 1) return {byte(at), 1, true};
  if (l.size == 0) return {kReplacement, 1, false};

  char32_t value = byte(at) & (0x7F >> l.size);
  for (int i = 1; i < l.size; ++i) {
    const size_t here = at + static_cast<size_t>(i);
    const uint8_t low = i == 1 ? l.low : 0x80, high = i == 1 ? l.high : 0xBF;
    if (here >= text.size() || byte(here) < low || byte(here) > high)
      return {kReplacement, i, false};
    value = value << 6 | (byte(here) & 0x3F);
  }
  return {value, l.size, true};
}

size_t find_invalid_utf8(std::string_view text) {
  for (size_t at = 0; at < text.size();) {
    if (is_ascii(text[at])) {
      ++at;
      continue;
    }
    const CodePoint c = decode_utf8(text, at);
    if (!c.valid) return at;
    at += static_cast<size_t>(c.length);
  }
  return std::string_view::npos;
}

std::string replace_invalid_utf8(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (size_t at = 0; at < text.size();) {
    const CodePoint c = decode_utf8(text, at);
    const auto length = static_cast<size_t>(c.length);
    if (c.valid)
      out.append(text, at, length);
    else
      append_utf8(out, kReplacement);
    at += length;
  }
  return out;
}

void append_utf8(std::string& text, char32_t c) {
  const auto put = [&](char32_t b) { text.push_back(static_cast<char>(b)); };
  if (c < 0x80) return put(c);
  if (c < 0x800) {
    put(0xC0 | c >> 6);
  } else if (c < 0x10000) {
    put(0xE0 | c >> 12);
    put(0x80 | (c >> 6 & 0x3F));
  } else {
    put(0xF0 | c >> 18);
    put(0x80 | (c >> 12 & 0x3F));
    put(0x80 | (c >> 6 & 0x3F));
  }
  put(0x80 | (c & 0x3F));
}

CodePoints::Iterator::Iterator(std::string_view text, size_t at) : text_(text), at_(at) {
  if (at_ < text_.size()) now_ = decode_utf8(text_, at_);
}

CodePoints::Iterator& CodePoints::Iterator::operator++() {
  at_ += static_cast<size_t>(now_.length);
  if (at_ < text_.size()) now_ = decode_utf8(text_, at_);
  return *this;
}

CodePoints::Iterator CodePoints::Iterator::operator++(int) {
  Iterator before = *this;
  ++*this;
  return before;
}

int64_t count_code_points(std::string_view text) {
  int64_t count = 0;
  for (size_t at = 0; at < text.size(); ++count)
    at += is_ascii(text[at]) ? 1 : static_cast<size_t>(decode_utf8(text, at).length);
  return count;
}

int display_width(char32_t c) {
  if (c >= 0x20 && c < 0x7F) return 1;
  const auto u = static_cast<UChar32>(c);
  switch (u_charType(u)) {
    case U_CONTROL_CHAR:
    case U_FORMAT_CHAR:
    case U_NON_SPACING_MARK:
    case U_ENCLOSING_MARK:
      return c == 0xAD ? 1 : 0;  // terminals show the soft hyphen, U+00AD
    default:
      break;
  }
  if (c >= 0x1160 && c <= 0x11FF)
    return 0;  // Hangul vowels and finals combine with the previous syllable
  const int width = u_getIntPropertyValue(u, UCHAR_EAST_ASIAN_WIDTH);
  return width == U_EA_WIDE || width == U_EA_FULLWIDTH ? 2 : 1;
}

int display_width(std::string_view text) {
  int width = 0;
  for (char32_t c : code_points(text)) width += display_width(c);
  return width;
}

std::string printable(std::string_view text, size_t limit) {
  static constexpr char kHex[] = "0123456789abcdef";
  std::string out;
  for (size_t at = 0; at < text.size();) {
    if (out.size() >= limit) return out + "…";
    const CodePoint c = decode_utf8(text, at);
    const auto length = static_cast<size_t>(c.length);
    const int8_t type = u_charType(static_cast<UChar32>(c.value));
    if (c.valid && type != U_CONTROL_CHAR && type != U_FORMAT_CHAR) {
      out.append(text, at, length);
    } else {
      for (const char b : text.substr(at, length))
        out.append({'\\', 'x', kHex[static_cast<uint8_t>(b) >> 4], kHex[b & 15]});
    }
    at += length;
  }
  return out;
}

std::string nfc(std::string_view text) {
  if (std::ranges::all_of(text, is_ascii)) return std::string(text);
  const std::string clean = replace_invalid_utf8(text);
  UErrorCode status = U_ZERO_ERROR;
  const icu::Normalizer2* normalizer = icu::Normalizer2::getNFCInstance(status);
  check(U_SUCCESS(status), ExitCode::unexpected, "ICU has no NFC data: ", u_errorName(status));
  const icu::UnicodeString in = icu::UnicodeString::fromUTF8(clean);
  const icu::UnicodeString out = normalizer->normalize(in, status);
  check(U_SUCCESS(status), ExitCode::unexpected, "NFC failed: ", u_errorName(status));
  std::string result;
  return out.toUTF8String(result);
}

}  // namespace fovea
