#pragma once

#include <functional>
#include <string>

#include "view/labelled_matrix.h"

namespace fovea {

// How a terminal can show weights. The kinds are in ascending order of ability.
enum class TerminalShades { ascii, blocks, colours_256, colours_24_bit };

struct TerminalOptions {
  TerminalShades shades = TerminalShades::blocks;
  int width = 80;
  bool dark_ground = true;
};

// Derives options from the environment: NO_COLOR, COLORTERM, TERM, COLORFGBG, COLUMNS and the
// locale. It allows colours only if `to_terminal` is true (the output is a terminal) and NO_COLOR
// is empty.
using Environment = std::function<const char*(const char*)>;
TerminalOptions terminal_options(const Environment& environment, bool to_terminal);

// Returns the options for standard output of this process. If $COLUMNS is set, it overrides the
// width of the terminal.
TerminalOptions standard_output_options();

// Returns the matrix as lines of text: a row per target word, a column per source word. The largest
// weight of each row is marked. If there is space, its source word follows at the right. If the
// source words exceed the width, they are split into panels, one below the other.
std::string terminal_map(const AttentionMatrix& matrix, const TerminalOptions& options);

// Returns the source words as running text, each with the colour of its weight for target word i.
// If the terminal has no colours, a block follows each word, and its height shows the weight.
std::string shaded_words(const AttentionMatrix& matrix, size_t i, const TerminalOptions& options);

}  // namespace fovea
