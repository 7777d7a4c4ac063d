#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace fovea {

// A line as Unicode code points: the metrics count and compare characters, not bytes.
using Characters = std::u32string;

// Every ill-formed byte sequence becomes one U+FFFD, as Unicode recommends.
Characters characters_of(std::string_view utf8);
std::string utf8_of(std::u32string_view characters);

// White space as sacreBLEU's definition has it: what Python's str.split() divides at.
bool is_blank(char32_t c);

// The full lower case of Unicode without a language: final sigma, İ → i̇.
Characters lower_case(const Characters& text);

Characters without_trailing_blanks(Characters text);

// The runs of characters between blanks; the views live as long as `text`.
std::vector<std::u32string_view> words_of(std::u32string_view text);

}  // namespace fovea
