#pragma once

#include "view/drawing.h"
#include "view/labelled_matrix.h"

namespace fovea {

// Draws the marks over a map whose cells have this size. The upper left corner of the first cell is
// (0, 0).
void draw_marks(Drawing& drawing, const AttentionMatrix& matrix, double cell);

// Draws the legend of the marks from the position of `at` downwards, in lines of at most `width`
// pixels. Returns the y below the legend.
double draw_mark_legend(Drawing& drawing, const MatrixAnnotations& marks, Drawing::Text at,
                        double width);

}  // namespace fovea
