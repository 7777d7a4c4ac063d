#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "decode/beam.h"

namespace fovea {

// The options of sampling.
struct SamplerOptions {
  double temperature = 1;  // > 0; below 1 sharper, above 1 flatter
  int64_t top_k = 0;       // only the k most probable words; 0: all
  double top_p = 1;        // only the smallest set of words with at least this probability
  uint64_t seed = 1;
};

// The position of a random number. It does not depend on the batch that has the sentence.
struct RandomDraw {
  int64_t sentence = 0;  // its number in the whole input
  int64_t sample = 0;    // the index of this translation of the sentence
  int64_t step = 0;
};

// Draws words from rows of scores. Not thread-safe: it reuses its working memory.
class Sampler {
 public:
  explicit Sampler(const SamplerOptions& options) : options_(options) {}

  // `scores` are logits; `banned` words are never drawn. The log-probability of the result is that
  // of the model over all words at temperature 1. REQUIRES: at least one word is not banned.
  Candidate draw(std::span<const double> scores, double log_sum, std::span<const int32_t> banned,
                 const RandomDraw& which);

 private:
  struct WordWeight {
    double weight;
    int32_t word;
  };
  void keep_probable();

  SamplerOptions options_;
  std::vector<WordWeight> words_;
};

}  // namespace fovea
