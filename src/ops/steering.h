#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "ops/topk.h"

namespace fovea {

// Note [Ahead]
// Until the host has read the scores of a step, chosen the rows of the next and told the device of
// them, a GPU has nothing to do. So it chooses them itself, by the same rules with the same
// arithmetic (those of Beam, decode/beam.h), and is at the next step already while the host
// follows: it chooses as well, keeps account of what was found, and makes sure that both agree.

// The rules of a search, for each sentence that a state was started with.
struct Steering {
  int64_t width, n_best;  // hypotheses alive at most; finished ones that are wanted
  int64_t candidates;     // that are looked at of each row
  int32_t end;            // the word that ends a hypothesis
  std::vector<int32_t> banned;
  double length_penalty;
  bool early_stop;
  std::vector<int32_t> max_lengths;  // of each sentence
};
inline constexpr int64_t kMostSteered = 32;  // hypotheses of a sentence
inline constexpr double kImpossible = -1e8;  // log-probabilities below are no way to go on

// What the host is told of a step; it stands until the next one is asked for.
struct Steered {
  TopK best;
  Tensor endings;                           // [rows]: the scores of </s>
  std::span<const int32_t> words, parents;  // that were chosen for the rows of the next step
};

}  // namespace fovea
