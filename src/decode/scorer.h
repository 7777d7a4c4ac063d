#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "models/model.h"
#include "text/corpus.h"

namespace fovea {

// The probability of a given translation under the models.
struct PairScore {
  std::vector<float> log_probs;  // one for each target piece and for </s>
  double log_prob = 0;           // Σ log_probs
};

// Scores every pair of the corpus by forced decoding: the decoder reads the given translation. The
// results are in the order of the corpus. If there are several models (an ensemble), the
// probability of a word is the mean over the models. The score of a pair does not depend on other
// pairs.
std::vector<PairScore> score_pairs(std::span<const Model* const> models, const Corpus& pairs,
                                   int64_t batch_tokens = 2048);

}  // namespace fovea
