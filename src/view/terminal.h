#pragma once

#include <functional>
#include <string>

#include "view/labelled_matrix.h"

namespace fovea {

// What the terminal can show, poorest first.
enum class TerminalShades { ascii, blocks, colours_256, colours_24_bit };

enum class SourceLabels {
  automatic,  // stairs for up to twenty words or scripts that join, upright above
  stairs,     // each word level, on a line of its own above a leader to its column
  upright,    // letters one below the other
};

struct TerminalOptions {
  TerminalShades shades = TerminalShades::blocks;
  SourceLabels labels = SourceLabels::automatic;
  int width = 80;
  int word_columns = 20;  // longer words are shortened with …
  bool dark_ground = true;
};

// What the environment says of the terminal: NO_COLOR, COLORTERM, TERM, COLORFGBG, COLUMNS and the
// locale. Colours only where `to_terminal` (the output is a terminal) and NO_COLOR is empty.
using Environment = std::function<const char*(const char*)>;
TerminalOptions terminal_options(const Environment& environment, bool to_terminal);

// The same of standard output and this process. $COLUMNS overrides the width of the terminal.
TerminalOptions standard_output_options();

// The matrix as lines of text, one row per target word, source words across. Each row's largest
// weight is marked and, where there is room, named at the right. Sentences too long for the width
// are cut into panels of source words, one below the other.
std::string terminal_map(const AttentionMatrix& matrix, const TerminalOptions& options);

// The source words as running text, each in the colour of the weight that target word i gives it;
// without colours, a block as high as the weight follows each word.
std::string shaded_words(const AttentionMatrix& matrix, size_t i, const TerminalOptions& options);

}  // namespace fovea
