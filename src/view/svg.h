#pragma once

#include <string>
#include <vector>

#include "view/labelled_matrix.h"

namespace fovea {

struct SvgOptions {
  double cell = 0;        // side of a cell in pixels; 0: by the number of words
  int word_columns = 24;  // longer words are shortened with …
  std::string caption = "Each row shows how one target word spreads its attention over the source.";
};

// The matrix as an SVG file: target rows, source columns, white to dark blue, each row's largest
// weight outlined, weights written in cells that are large enough, tooltips on every cell.
// Well-formed for any words and weights.
std::string svg_map(const AttentionMatrix& matrix, const SvgOptions& options = {});

struct AttentionGrid {
  std::vector<std::vector<AttentionMatrix>> layers;  // [layer][head], all of the same words
  std::string title = {};
};

// Small multiples: a row of thumbnails for each layer, a column for each head, one scale for all.
std::string svg_grid(const AttentionGrid& grid, const SvgOptions& options = {});

}  // namespace fovea
