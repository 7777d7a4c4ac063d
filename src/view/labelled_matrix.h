#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "view/annotations.h"

namespace fovea {

// Attention weights with words: weights[i · source + j] is the weight of source word j for target
// word i, where `source` is the number of source words. Words may have any bytes. Weights should
// lie in [0, 1]. Pictures show any other number as "no value".
struct AttentionMatrix {
  std::vector<std::string> source, target;
  std::vector<float> weights;  // [target, source]
  std::string title = {};
  MatrixAnnotations marks = {};

  float at(size_t i, size_t j) const { return weights[i * source.size() + j]; }
};

// If there is not one weight for each pair of words, or marks do not fit the matrix, throws an
// Error.
void check_shape(const AttentionMatrix& matrix);

// Whether a weight can be drawn: it is finite and, up to rounding errors, in [0, 1].
bool drawable(float weight);

// Returns the column of the largest drawable weight of row i; of equal weights, the first. If the
// row has no drawable weight, returns source.size().
size_t strongest(const AttentionMatrix& matrix, size_t i);

// Returns the weight that gets the darkest colour. If any weight is at least 0.5, it is 1.
// Otherwise it is the largest weight, rounded up to one digit, so that long rows of small weights
// stay visible.
float scale_top(const AttentionMatrix& matrix);

// Returns a weight as text of at most three characters: "1", ".87", "0".
std::string short_weight(float weight);

}  // namespace fovea
