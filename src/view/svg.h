#pragma once

#include <string>
#include <vector>

#include "view/labelled_matrix.h"

namespace fovea {

// The matrix as an SVG file: target rows, source columns, white to dark blue. The largest weight of
// each row has an outline, large cells show their weight, and all cells have tooltips. The file is
// well-formed for any words and weights.
std::string svg_map(
    const AttentionMatrix& matrix,
    const std::string& caption =
        "Each row shows how one target word spreads its attention over the source.");

struct AttentionGrid {
  std::vector<std::vector<AttentionMatrix>> layers;  // [layer][head], all for the same words
  std::string title = {};
};

// A grid of thumbnails, a row per layer and a column per head, with the same scale.
std::string svg_grid(const AttentionGrid& grid);

}  // namespace fovea
