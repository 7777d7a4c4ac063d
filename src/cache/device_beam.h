#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "ops/topk.h"

namespace fovea {

// Note [Ahead]
// If the host reads the scores of a step, selects the rows of the next step and sends them to the
// GPU, the GPU waits meanwhile. So the GPU selects the rows itself, by the same rules with the same
// arithmetic (those of Beam, decode/beam.h), and already computes the next step. The host follows:
// it makes the same selection, collects the results, and checks that both agree.

// The rules of a beam search on the device. All sentences of one start share them.
struct BeamRules {
  int64_t width, n_best;  // maximum number of live hypotheses; number of results
  int64_t candidates;     // words considered per row
  int32_t end;            // the word that ends a hypothesis
  std::vector<int32_t> banned;
  double length_penalty;
  bool early_stop;
  std::vector<int32_t> max_lengths;  // of each sentence
};
inline constexpr int64_t kMostSteered = 32;  // maximum width of a search on the device
inline constexpr double kImpossible =
    -1e8;  // words with lower log-probabilities are never selected

// The results of a step for the host. Valid until the next step is requested.
struct BeamStepResult {
  TopK best;
  Tensor endings;                           // [rows]: scores of </s>
  std::span<const int32_t> words, parents;  // selected for the rows of the next step
};

}  // namespace fovea
