#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace fovea {

// A line as Unicode code points, because the metrics count and compare characters, not bytes.
using Characters = std::u32string;

// Decodes UTF-8. Replaces each ill-formed sequence of bytes by one U+FFFD, as Unicode recommends.
Characters characters_of(std::string_view utf8);
std::string utf8_of(std::u32string_view characters);

// Whether sacreBLEU counts c as white space: Python's str.split() splits at c.
bool is_blank(char32_t c);

// Returns the text in Unicode's full lower case, which does not depend on a language. It handles
// the final sigma and İ → i̇.
Characters lower_case(const Characters& text);

Characters without_trailing_blanks(Characters text);

// Returns the words of the text, which white space separates. `text` must outlive the views.
std::vector<std::u32string_view> words_of(std::u32string_view text);

}  // namespace fovea
