#pragma once

#include <functional>
#include <string>

#include "view/labelled_matrix.h"

namespace fovea {

// How a terminal can show weights, the weakest ability first.
enum class TerminalShades { ascii, blocks, colours_256, colours_24_bit };

struct TerminalOptions {
  TerminalShades shades = TerminalShades::blocks;
  int width = 80;
  bool dark_ground = true;
};

// Derives options from the environment: NO_COLOR, COLORTERM, TERM, COLORFGBG, COLUMNS and the
// locale. Uses colours only if `to_terminal` (the output is a terminal) and NO_COLOR is empty.
using Environment = std::function<const char*(const char*)>;
TerminalOptions terminal_options(const Environment& environment, bool to_terminal);

// Returns the options for standard output in this process. $COLUMNS overrides the width of the
// terminal.
TerminalOptions standard_output_options();

// Returns the matrix as lines of text: a row per target word, a column per source word. The largest
// weight of each row is marked and, if there is space, its source word is named at the right. If
// the source words exceed the width, they are split into panels, one below the other.
std::string terminal_map(const AttentionMatrix& matrix, const TerminalOptions& options);

// Returns the source words as running text, each with the colour of its weight for target word i.
// Without colours, a block follows each word, whose height is proportional to the weight.
std::string shaded_words(const AttentionMatrix& matrix, size_t i, const TerminalOptions& options);

}  // namespace fovea
