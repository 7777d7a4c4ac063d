#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "ops/topk.h"

namespace fovea {

// Note [Ahead]
// In a simple search, the host reads the scores of a step, selects the hypotheses (rows) of the
// next step and sends them to the GPU, which waits meanwhile. To avoid this, the GPU selects the
// rows itself and computes the next step at once. It uses the same rules and arithmetic as Beam
// (decode/beam.h). The host follows one step later: it makes the same selection, collects the
// results, and checks that both selections agree.

// The rules of a beam search on the device. All sentences of the search have the same rules.
struct BeamRules {
  int64_t width, n_best;        // per sentence: maximum number of live hypotheses; of results
  int64_t candidates;           // number of best words of each row that the search considers
  int32_t end;                  // the word that ends a hypothesis
  std::vector<int32_t> banned;  // ids of words that are never selected
  double length_penalty;
  bool early_stop;
  std::vector<int32_t> max_lengths;  // per sentence: maximum number of words with </s>
};
inline constexpr int64_t kMostSteered = 32;  // maximum width of a search on the device
inline constexpr int64_t kMostBanned = 4;    // maximum number of banned words
inline constexpr double kImpossible =
    -1e8;  // a word with this log-probability or a lower one is never selected

// The results of a step that the host reads. Valid until the next step is requested.
struct BeamStepResult {
  TopK best;
  Tensor endings;                           // [rows]: logit of </s> in each row
  std::span<const int32_t> words, parents;  // per next row: its word and previous row
};

}  // namespace fovea
