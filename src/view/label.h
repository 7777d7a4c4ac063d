#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace fovea {

// Makes a word safe to print in a terminal or picture. The result is valid UTF-8 with at most
// `columns` (≥ 2) terminal columns. Visible signs replace control characters and direction
// overrides, and long runs of combining marks are cut. If the word is shortened, … ends it. The
// time depends on the length of the result, not of the word.
std::string label(std::string_view word, int columns = 24);

// Returns the letters of a label. A letter is a sequence that must stay together, such as a base
// letter with its marks, or an emoji sequence.
std::vector<std::string> letters(std::string_view label);

// Returns the number of terminal columns of a label.
int columns(std::string_view label);

// Splits the text at spaces into lines of at most max(width, 8) terminal columns. Shortens longer
// words. If there are more than `limit` lines, omits the later lines and ends the last one with ….
std::vector<std::string> wrap_columns(std::string_view text, int width, size_t limit = SIZE_MAX);

// Whether the label has letters of right-to-left scripts.
bool right_to_left(std::string_view label);

// Whether letters of the label change their form or join with their neighbours (Arabic, Indic
// scripts). Then the letters cannot be written below each other.
bool joined_script(std::string_view label);

// Escapes the five special characters of XML text and attributes.
std::string xml(std::string_view label);

}  // namespace fovea
