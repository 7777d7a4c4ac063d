#pragma once

#include <cstdint>
#include <functional>

#include "text/word_stream.h"
#include "text/word_vectors.h"

namespace fovea {

struct SkipGramProgress {
  int64_t words;  // learnt from so far, frequent ones left out included, over all epochs
  int64_t total;
  double loss;        // of a pair, the mean since the last call
  double rate;        // of learning, now
  int64_t pairs = 0;  // of words, learnt from since the last call
};

struct SkipGramOptions {
  int64_t size = 100;     // numbers in a vector
  int64_t window = 5;     // words to either side, at most
  int64_t negatives = 5;  // random words for each pair
  int64_t epochs = 5;
  double subsample = 1e-4;  // t: words with a share above it are left out now and then; 0: never
  double rate = 0.025;      // of learning, at the start; falls to almost 0
  uint64_t seed = 1;
  // Called now and then; learning ends when it says no.
  std::function<bool(const SkipGramProgress&)> progress = nullptr;
};

// Vectors of words, learnt by predicting from each word those around it (Mikolov et al.:
// Distributed Representations of Words and Phrases and their Compositionality, NIPS 2013,
// sections 2.2 and 2.3): skip-gram with negative sampling. The same text and options give the same
// bits, whatever the number of threads. Exit::diverged where numbers grow beyond all bounds.
WordVectors train_skip_gram(const WordStream& text, const SkipGramOptions& options);

}  // namespace fovea
