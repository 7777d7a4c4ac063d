#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "decode/beam.h"

namespace fovea {

struct SamplerOptions {
  double temperature = 1;  // > 0; below 1 sharper, above 1 flatter
  int64_t top_k = 0;       // only the k most probable words; 0: all
  double top_p = 1;        // only the smallest set of words with at least this probability
  uint64_t seed = 1;
};

// Which random number to use: never which batch the sentence happens to stand in.
struct Draw {
  int64_t sentence = 0;  // its number in the whole input
  int64_t sample = 0;    // the how manieth translation of it
  int64_t step = 0;
};

// Draws words from rows of scores. Not shared between threads: it keeps its working memory.
class Sampler {
 public:
  explicit Sampler(const SamplerOptions& options) : options_(options) {}

  // `scores` are logits; `banned` words are never drawn. The result's log-probability is the
  // model's own: of all words and at temperature 1. REQUIRES: a word that is not banned.
  Candidate draw(std::span<const double> scores, double log_sum, std::span<const int32_t> banned,
                 const Draw& which);

 private:
  struct Weighted {
    double weight;
    int32_t word;
  };
  void keep_probable();

  SamplerOptions options_;
  std::vector<Weighted> words_;
};

}  // namespace fovea
