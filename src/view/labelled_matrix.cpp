#include "view/labelled_matrix.h"

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "base/check.h"

namespace fovea {

void check_shape(const AttentionMatrix& matrix) {
  check(matrix.weights.size() == matrix.source.size() * matrix.target.size(), ExitCode::data,
        "attention matrix of ", matrix.target.size(), " target and ", matrix.source.size(),
        " source words holds ", matrix.weights.size(), " weights, expected ",
        matrix.source.size() * matrix.target.size());
  check_marks(matrix.marks, matrix.target.size(), matrix.source.size());
}

bool drawable(float weight) { return weight >= -1e-4f && weight <= 1.0001f; }

size_t strongest(const AttentionMatrix& matrix, size_t i) {
  const size_t none = matrix.source.size();
  size_t best = none;
  for (size_t j = 0; j < none; ++j)
    if (drawable(matrix.at(i, j)) && (best == none || matrix.at(i, j) > matrix.at(i, best)))
      best = j;
  return best;
}

float scale_top(const AttentionMatrix& matrix) {
  float largest = 0;
  for (float w : matrix.weights)
    if (drawable(w)) largest = std::max(largest, w);
  if (largest >= 0.5f || largest < 1e-6f) return 1;
  const float power = std::pow(10.0f, std::floor(std::log10(largest)));
  return std::ceil(largest / power - 1e-4f) * power;
}

std::string short_weight(float weight) {
  char text[16];
  std::snprintf(text, sizeof text, "%.2f", std::clamp(weight, 0.0f, 1.0f));
  const std::string digits = text;
  if (digits == "1.00") return "1";
  if (digits == "0.00") return "0";
  return digits.substr(1);
}

}  // namespace fovea
