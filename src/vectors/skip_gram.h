#pragma once

#include <cstdint>
#include <functional>

#include "vectors/word_stream.h"
#include "vectors/word_vectors.h"

namespace fovea {

// The state of the training, for a progress callback.
struct SkipGramProgress {
  int64_t words;      // words processed so far in all epochs, including skipped words
  int64_t total;      // value of `words` at the end
  double loss;        // mean loss per pair since the last call
  double rate;        // current learning rate
  int64_t pairs = 0;  // pairs of words since the last call
};

// The options of skip-gram training.
struct SkipGramOptions {
  int64_t size = 100;     // numbers in a vector
  int64_t window = 5;     // maximum distance of a context word
  int64_t negatives = 5;  // negative samples per pair
  int64_t epochs = 5;
  double subsample = 1e-4;  // t: words above this frequency are skipped at random; 0: none
  double rate = 0.025;      // initial learning rate; falls to almost 0
  uint64_t seed = 1;
  // Called from time to time; if it returns false, training stops.
  std::function<bool(const SkipGramProgress&)> progress = nullptr;
};

// Trains word vectors by skip-gram with negative sampling (Mikolov et al.: Distributed
// Representations of Words and Phrases and their Compositionality, NIPS 2013, sections 2.2 and
// 2.3). The same text and options give the same bits for any number of threads. Throws
// ExitCode::diverged if the loss is not finite.
WordVectors train_skip_gram(const WordStream& text, const SkipGramOptions& options);

}  // namespace fovea
