#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace fovea {

// Makes a word safe to print in a terminal or picture. The result is valid UTF-8 with at most
// `columns` (≥ 2) terminal columns. Control characters and direction overrides are replaced by
// visible signs, long runs of combining marks are truncated, and … ends a shortened word. The time
// depends on the length of the result, not of the word.
std::string label(std::string_view word, int columns = 24);

// The parts of a label that must not be separated: a letter with its marks, an emoji sequence.
std::vector<std::string> letters(std::string_view label);

// The number of terminal columns of a label.
int columns(std::string_view label);

// Splits the text at spaces into lines of at most `width` columns, at least 8. Shortens longer
// words. If there are more than `limit` lines, the last one ends with ….
std::vector<std::string> wrap_columns(std::string_view text, int width, size_t limit = SIZE_MAX);

// Whether the label has letters of right-to-left scripts.
bool right_to_left(std::string_view label);

// Whether the letters of the label change or join with their neighbours (Arabic, Indic scripts).
// Such a label cannot be written vertically.
bool joined_script(std::string_view label);

// Escapes the five special characters of XML text and attributes.
std::string xml(std::string_view label);

}  // namespace fovea
