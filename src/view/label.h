#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace fovea {

// A word made fit to be shown in a terminal or a picture: valid UTF-8, control characters and
// direction overrides replaced by visible signs, runs of combining marks cut, and shortened with …
// to at most `columns` (≥ 2) terminal columns. Costs time in the length shown, not in that given.
std::string label(std::string_view word, int columns = 24);

// The pieces of a label that must stay together: a letter with its marks, an emoji sequence.
std::vector<std::string> letters(std::string_view label);

// How many terminal columns a label takes.
int columns(std::string_view label);

// Whether the label holds letters written from right to left.
bool right_to_left(std::string_view label);

// Whether the label's letters change or join with their neighbours (Arabic, Indic scripts), so that
// it cannot be written one letter below the other.
bool joined_script(std::string_view label);

// The label with the five characters escaped that mean something in XML text and attributes.
std::string xml(std::string_view label);

}  // namespace fovea
