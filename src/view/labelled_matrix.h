#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "view/annotations.h"

namespace fovea {

// Who looks at whom: weights[i · source + j] is how much target word i attends to source word j.
// Words may hold any bytes; weights should lie in [0, 1], anything else is drawn as "no value".
struct AttentionMatrix {
  std::vector<std::string> source, target;
  std::vector<float> weights;  // [target, source]
  std::string title = {};
  MatrixAnnotations marks = {};

  float at(size_t i, size_t j) const { return weights[i * source.size() + j]; }
};

// Throws unless there is one weight for each pair of words and marks fit them.
void check_shape(const AttentionMatrix& matrix);

// True for a weight that can be drawn: finite, and in [0, 1] but for rounding.
bool drawable(float weight);

// The column of the largest drawable weight of row i, the first of equals; source.size() if none.
size_t strongest(const AttentionMatrix& matrix, size_t i);

// The weight that gets the full colour: 1 where any weight reaches one half, otherwise the largest
// weight rounded up to one digit, so that long flat rows stay visible.
float scale_top(const AttentionMatrix& matrix);

// A weight as three characters or less: "1", ".87", "0".
std::string short_weight(float weight);

}  // namespace fovea
