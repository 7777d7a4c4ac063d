#pragma once

#include <functional>
#include <string>

#include "view/labelled_matrix.h"

namespace fovea {

// The abilities of a terminal, weakest first.
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

// The options for standard output in this process. $COLUMNS overrides the width of the terminal.
TerminalOptions standard_output_options();

// The matrix as lines of text, one row per target word, with source words across. The largest
// weight of each row is marked and, if there is space, named at the right. A sentence that exceeds
// the width is split into panels of source words, one below the other.
std::string terminal_map(const AttentionMatrix& matrix, const TerminalOptions& options);

// The source words as running text, each with the colour of its weight for target word i. Without
// colours, a block of proportional height follows each word.
std::string shaded_words(const AttentionMatrix& matrix, size_t i, const TerminalOptions& options);

}  // namespace fovea
