#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "models/model.h"
#include "text/corpus.h"

namespace fovea {

// The probability of a given translation under the model.
struct PairScore {
  std::vector<float> log_probs;  // of each target piece and of </s>
  double log_prob = 0;           // Σ log_probs
};

// Scores every pair of the corpus by forced decoding. The results have the order of the corpus.
// Several models are an ensemble: the probability of a word is the mean of the probabilities of the
// models. The score of a pair does not depend on the other pairs.
std::vector<PairScore> score_pairs(std::span<const Model* const> models, const Corpus& pairs,
                                   int64_t batch_tokens = 2048);

}  // namespace fovea
