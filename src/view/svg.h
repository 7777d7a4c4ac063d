#pragma once

#include <string>
#include <vector>

#include "view/labelled_matrix.h"

namespace fovea {

// Returns the matrix as an SVG file. Rows are target words, columns are source words, and the
// colours go from white (0) to dark blue. The largest weight of each row has an outline, large
// cells show their weight as a number, and all cells have tooltips. The file is well-formed XML for
// any words and weights.
std::string svg_map(
    const AttentionMatrix& matrix,
    const std::string& caption =
        "Each row shows how one target word spreads its attention over the source.");

struct AttentionGrid {
  std::vector<std::vector<AttentionMatrix>> layers;  // [layer][head], all for the same words
  std::string title = {};
};

// Returns an SVG file with a grid of thumbnails: a row per layer and a column per head. All
// thumbnails have the same colour scale.
std::string svg_grid(const AttentionGrid& grid);

}  // namespace fovea
