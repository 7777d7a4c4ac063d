#pragma once

#include <cstddef>
#include <cstdint>
#include <iterator>
#include <string>
#include <string_view>

namespace fovea {

inline constexpr char32_t kReplacement = U'\uFFFD';

// The result of decoding at one position: a code point and its `length` in bytes. If the bytes are
// not UTF-8, the code point is U+FFFD, and `length` (1 to 3) is that of the longest prefix that can
// begin a code point. This is Unicode's "maximal subpart" practice, like Python's errors='replace'.
struct CodePoint {
  char32_t value;
  int length;
  bool valid;
};

// Decodes the code point at byte `at`. REQUIRES: at < text.size().
CodePoint decode_utf8(std::string_view text, size_t at);

// Offset of the first byte that is not valid UTF-8 (overlong forms, surrogates, beyond U+10FFFF,
// truncated). If the text is valid, std::string_view::npos.
size_t find_invalid_utf8(std::string_view text);
inline bool is_utf8(std::string_view text) {
  return find_invalid_utf8(text) == std::string_view::npos;
}

std::string replace_invalid_utf8(std::string_view text);
void append_utf8(std::string& text, char32_t c);  // REQUIRES: c is a Unicode scalar value

// A range for `for (char32_t c : code_points(text))`. Invalid bytes give U+FFFD. The iterator's
// offset() is the byte position of the code point. The text must outlive the range.
class CodePoints {
 public:
  class Iterator {
   public:
    using value_type = char32_t;
    using difference_type = std::ptrdiff_t;
    Iterator() = default;
    Iterator(std::string_view text, size_t at);
    char32_t operator*() const { return now_.value; }
    Iterator& operator++();
    Iterator operator++(int);
    bool operator==(const Iterator& other) const { return at_ == other.at_; }
    size_t offset() const { return at_; }
    int length() const { return now_.length; }

   private:
    std::string_view text_;
    size_t at_ = 0;
    CodePoint now_{0, 0, true};
  };

  explicit CodePoints(std::string_view text) : text_(text) {}
  Iterator begin() const { return {text_, 0}; }
  Iterator end() const { return {text_, text_.size()}; }

 private:
  std::string_view text_;
};

inline CodePoints code_points(std::string_view text) { return CodePoints(text); }
int64_t count_code_points(std::string_view text);

// The number of columns that a terminal uses for a character or a text. A character uses 2 columns
// if it is East Asian wide or an emoji, 0 if it is a combining mark or a control character,
// otherwise 1.
int display_width(char32_t c);
int display_width(std::string_view text);

// The text in a form for messages: control characters and invalid bytes become \xNN. If the text is
// longer than `limit` bytes, the result is its beginning and "…".
std::string printable(std::string_view text, size_t limit = 80);

// Unicode normalisation form C (ICU). Invalid bytes become U+FFFD.
std::string nfc(std::string_view text);

}  // namespace fovea
