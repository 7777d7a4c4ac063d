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

// Returns the letters of a label: the parts that must not be separated, for example a letter with
// its marks, or an emoji sequence.
std::vector<std::string> letters(std::string_view label);

// Returns the number of terminal columns of a label.
int columns(std::string_view label);

// Splits the text at spaces into lines of at most max(width, 8) columns. Shortens longer words. If
// there are more than `limit` lines, omits the others and ends the last one with ….
std::vector<std::string> wrap_columns(std::string_view text, int width, size_t limit = SIZE_MAX);

// Whether the label has letters of right-to-left scripts.
bool right_to_left(std::string_view label);

// Whether the letters of the label change or join with their neighbours (Arabic, Indic scripts).
// Such a label cannot be written vertically.
bool joined_script(std::string_view label);

// Escapes the five special characters of XML text and attributes.
std::string xml(std::string_view label);

}  // namespace fovea
