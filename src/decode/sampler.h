#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "decode/beam.h"

namespace fovea {

// The options of sampling, which draws words at random instead of a search.
struct SamplerOptions {
  double temperature = 1;  // > 0; below 1: a sharper distribution, above 1: a flatter one
  int64_t top_k = 0;       // draws only from the k most probable words; 0: from all
  double top_p = 1;        // draws only from the fewest words whose sum reaches this
  uint64_t seed = 1;
};

// Which random number of a run a sampler draws. It does not depend on how sentences are distributed
// over batches.
struct RandomDraw {
  int64_t sentence = 0;  // index of the sentence in the whole input
  int64_t sample = 0;    // index of the sample among those of the sentence
  int64_t step = 0;
};

// Draws words from rows of scores. Not thread-safe: it reuses its working memory.
class Sampler {
 public:
  explicit Sampler(const SamplerOptions& options) : options_(options) {}

  // Draws one word. `scores` holds the logits of all words, `log_sum` is log Σ exp of them.
  // `banned` words are never drawn. The log-probability of the result is that of the model, at
  // temperature 1 and over all words. REQUIRES: at least one word is not banned.
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
