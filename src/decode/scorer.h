#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "models/model.h"
#include "text/corpus.h"

namespace fovea {

// How probable a given translation is under the model.
struct PairScore {
  std::vector<float> log_probs;  // of each target piece and </s>
  double log_prob = 0;           // Σ
};

// Forced decoding of every pair of the corpus, in its order. Several models are an ensemble: the
// mean of their probabilities of each word counts. A pair's score does not depend on the others.
std::vector<PairScore> score_pairs(std::span<const Model* const> models, const Corpus& pairs,
                                   int64_t batch_tokens = 2048);

}  // namespace fovea
