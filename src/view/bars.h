#pragma once

#include <string>

#include "view/svg.h"

namespace fovea {

// The first row of the matrix as an SVG file: one bar over each source word, for attention that is
// the same for every target word.
std::string svg_bars(const AttentionMatrix& matrix, const SvgOptions& options = {});

}  // namespace fovea
