#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "text/word_vectors.h"

namespace fovea {

struct Neighbour {
  int64_t word;
  double cosine;
};

// Finds the words whose vectors point in directions most like a given one.
class NeighbourSearch {
 public:
  explicit NeighbourSearch(const WordVectors& vectors);

  // The `count` nearest by cosine, nearest first, equal ones in the order of the file; `except`
  // (-1: none) is left out. A vector of zeros has cosine 0 with all.
  std::vector<Neighbour> nearest(std::span<const float> query, int64_t count,
                                 int64_t except = -1) const;

 private:
  const WordVectors& vectors_;
  std::vector<float> inverse_norms_;
};

// The word spelt most like `typed`, by single-letter edits over code points; -1 where none is near.
int64_t nearest_spelling(const WordVectors& vectors, std::string_view typed);

}  // namespace fovea
