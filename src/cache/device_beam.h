#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "ops/topk.h"

namespace fovea {

// Note [Ahead]
// If the host reads the scores of a step, selects the rows of the next step and sends them to the
// GPU, the GPU waits meanwhile. So the GPU selects the rows itself and already computes the next
// step. It uses the rules and the arithmetic of Beam (decode/beam.h). The host follows one step
// later: it makes the same selection, collects the results, and checks that both selections agree.

// The rules of a beam search on the device. All sentences of one start share them.
struct BeamRules {
  int64_t width, n_best;  // per sentence: maximum live hypotheses, results
  int64_t candidates;     // number of best words that are considered per row
  int32_t end;            // the word that ends a hypothesis
  std::vector<int32_t> banned;
  double length_penalty;
  bool early_stop;
  std::vector<int32_t> max_lengths;  // per sentence: maximum words of a hypothesis with </s>
};
inline constexpr int64_t kMostSteered = 32;  // maximum width of a search on the device
inline constexpr int64_t kMostBanned = 4;    // maximum number of banned words
inline constexpr double kImpossible =
    -1e8;  // words with this log-probability or a lower one are never selected

// The results of a step for the host. Valid until the next step is requested.
struct BeamStepResult {
  TopK best;
  Tensor endings;                           // [rows]: logits of </s>
  std::span<const int32_t> words, parents;  // per row of the next step: word, row it continues
};

}  // namespace fovea
