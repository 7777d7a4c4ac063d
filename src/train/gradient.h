#pragma once

#include <cstdint>
#include <span>

#include "models/model.h"
#include "text/batch.h"

namespace fovea {

// What a batch, or the batches of an update, cost.
struct Cost {
  double loss = 0;  // Σ over target words of the label-smoothed cross entropy
  double nll = 0;   // Σ −log p(word)
  int64_t words = 0, sentences = 0;
  double guided = 0;         // Σ over guided words of the distance from given alignments
  int64_t guided_words = 0;  // target words with links

  Cost& operator+=(const Cost& other);
};

// What a loss is made of.
struct LossOptions {
  double label_smoothing = 0;
  double guided_weight = 0;  // of the distance from given alignments, where the batch has any
};

// How dropout of one batch is keyed.
struct DropoutKey {
  uint64_t seed;
  int64_t drawn;
};

// Adds the gradient of the batch's loss (a sum, not a mean) to the store's gradients.
Cost add_gradient(Model& model, const PairBatch& batch, const LossOptions& options, DropoutKey key);

// A batch as a model learns from it; guided where the options give that a weight.
Lesson lesson_of(const PairBatch& batch, const LossOptions& options);

// What was computed for a batch.
struct Computed {
  double loss = 0, guided = 0;
  std::span<const double> log_likelihood;  // of its target words; what follows is not read
};
Cost cost_from(const PairBatch& batch, const LossOptions& options, const Computed& found);

// The cost alone, without dropout and smoothing.
Cost cost_of(const Model& model, const PairBatch& batch);

}  // namespace fovea
