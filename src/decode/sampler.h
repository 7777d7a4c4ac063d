#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "decode/beam.h"

namespace fovea {

// The options of sampling.
struct SamplerOptions {
  double temperature = 1;  // > 0; below 1 makes the distribution sharper, above 1 flatter
  int64_t top_k = 0;       // draws only from the k most probable words; 0: from all
  double top_p = 1;        // draws only from the fewest words whose probabilities sum to this
  uint64_t seed = 1;
};

// The position of a random number in the stream of a run. It does not depend on how sentences are
// distributed over batches.
struct RandomDraw {
  int64_t sentence = 0;  // the number of the sentence in the whole input
  int64_t sample = 0;    // the index of the sample of this sentence
  int64_t step = 0;
};

// Draws words from rows of scores. Not thread-safe: it reuses its working memory.
class Sampler {
 public:
  explicit Sampler(const SamplerOptions& options) : options_(options) {}

  // Draws one word. `scores` are the logits of all words, `log_sum` is log Σ exp of them. `banned`
  // words are never drawn. The log-probability of the result is that of the model over all words,
  // at temperature 1. REQUIRES: at least one word is not banned.
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
