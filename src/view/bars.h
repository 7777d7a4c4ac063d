#pragma once

#include <string>

#include "view/labelled_matrix.h"

namespace fovea {

// Returns the first row of the matrix as an SVG file with a bar above each source word. Use it if
// the attention is the same for all target words.
std::string svg_bars(const AttentionMatrix& matrix);

}  // namespace fovea
