#pragma once

#include "view/drawing.h"
#include "view/labelled_matrix.h"

namespace fovea {

// Draws the marks over a map of cells of this side whose first has its corner at (0, 0).
void draw_marks(Drawing& drawing, const AttentionMatrix& matrix, double cell);

// What the signs mean, in lines from (x, y) down that are at most `width` wide. Returns the y
// below.
double draw_mark_legend(Drawing& drawing, const MatrixAnnotations& marks, Drawing::Text at,
                        double width);

}  // namespace fovea
