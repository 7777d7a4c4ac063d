#pragma once

#include <cstddef>
#include <span>
#include <string_view>
#include <vector>

namespace fovea {

// Returns whether a character is a letter, mark or digit of a script that writes no blanks between
// words: Han, Hiragana, Katakana, Thai, Lao, Khmer or Myanmar.
bool is_unspaced(char32_t c);

// Returns whether a character is wide East Asian punctuation, such as 。 and 「, which needs no
// blanks.
bool is_wide_punctuation(char32_t c);

bool is_unspaced_or_wide(char32_t c);  // is_unspaced(c) || is_wide_punctuation(c)

// Returns whether a character belongs to Chinese or Japanese text: a letter of Han, Hiragana or
// Katakana, or wide East Asian punctuation. In such text, blanks separate neither words nor
// sentences.
bool is_east_asian(char32_t c);

// The first and the last code point of a text; 0 if the text is empty.
char32_t first_code_point(std::string_view text);
char32_t last_code_point(std::string_view text);

// Returns the offsets in `text`, ascending, at which a word ends without a following blank: the
// word boundaries of ICU (UAX 29 with dictionaries) next to a letter of an unspaced script or to
// wide punctuation. Empty for text without such letters, and for text whose words are already
// separated by blanks: see Note [Segmented text].
std::vector<size_t> word_breaks(std::string_view text);

// Returns the words of a text: the parts between ASCII blanks, split at word_breaks() or at the
// given breaks. The views point into `text`.
std::vector<std::string_view> text_words(std::string_view text);
std::vector<std::string_view> text_words(std::string_view text, std::span<const size_t> breaks);

}  // namespace fovea
