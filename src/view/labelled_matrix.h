#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "view/annotations.h"

namespace fovea {

// Attention weights with words: weights[i · source + j] is the weight of source word j for target
// word i. Words may have any bytes. Weights should lie in [0, 1]; any other number appears as "no
// value".
struct AttentionMatrix {
  std::vector<std::string> source, target;
  std::vector<float> weights;  // [target, source]
  std::string title = {};
  MatrixAnnotations marks = {};

  float at(size_t i, size_t j) const { return weights[i * source.size() + j]; }
};

// Throws unless there is one weight for each pair of words and the marks have the same shape.
void check_shape(const AttentionMatrix& matrix);

// Whether a weight can be drawn: it is finite and, except for rounding, in [0, 1].
bool drawable(float weight);

// Returns the column of the largest drawable weight of row i, the first one if several are equal,
// or source.size() if the row has no drawable weight.
size_t strongest(const AttentionMatrix& matrix, size_t i);

// Returns the weight that gets the full colour: 1 if any weight is at least 0.5. Otherwise it is
// the largest weight, rounded up to one digit, so that long, flat rows remain visible.
float scale_top(const AttentionMatrix& matrix);

// Returns a weight as text of at most three characters: "1", ".87", "0".
std::string short_weight(float weight);

}  // namespace fovea
