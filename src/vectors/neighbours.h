#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "vectors/word_vectors.h"

namespace fovea {

// A word and the cosine of its vector with the query.
struct Neighbour {
  int64_t word;  // index in WordVectors
  double cosine;
};

// A search for the words whose vectors have the largest cosines with a query. The vectors must
// outlive it.
class NeighbourSearch {
 public:
  explicit NeighbourSearch(const WordVectors& vectors);

  // Returns the `count` words with the largest cosines, the largest first. Words with equal cosines
  // are in the order of the file. Omits word `except` (-1: none). A zero vector has cosine 0 with
  // every vector.
  std::vector<Neighbour> nearest(std::span<const float> query, int64_t count,
                                 int64_t except = -1) const;

 private:
  const WordVectors& vectors_;
  std::vector<float> inverse_norms_;
};

// Returns the index of the word with the smallest edit_distance() to `typed`, in code points; -1 if
// no word is near.
int64_t nearest_spelling(const WordVectors& vectors, std::string_view typed);

}  // namespace fovea
