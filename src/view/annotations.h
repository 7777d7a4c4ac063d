#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace fovea {

// What an attention mechanism has of its own, drawn over its weights. Places are counted in source
// words: 0 is the middle of the first, −0.5 its left edge. Each list is empty or has one entry per
// target word; a place that is not finite is not drawn.
struct MatrixAnnotations {
  struct Span {
    float low, high;  // edges
  };

  std::vector<float> position = {};                // p_t, the middle of the window
  std::vector<Span> window = {};                   // outside it nothing is looked at
  std::vector<float> deviation = {};               // σ of the Gaussian around p_t
  std::vector<std::vector<float>> kappa = {};      // middles of Gaussians that move forward
  std::vector<std::vector<size_t>> chosen = {};    // the words looked at, where others have none
  std::vector<float> frontier = {};                // nothing left of it is looked at
  enum class Rows { own, same } rows = Rows::own;  // same: one row stands for all
  std::string note = {};                           // what is drawn, in words

  // Whether the mechanism bars target word i from looking at source word j.
  bool bars(size_t i, size_t j) const;
};

// Throws Exit::data where a list has not one entry per target word, or a choice is no source word.
void check_marks(const MatrixAnnotations& marks, size_t target, size_t source);

}  // namespace fovea
