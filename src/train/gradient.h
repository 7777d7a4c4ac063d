#pragma once

#include <cstdint>

#include "models/model.h"
#include "text/batch.h"

namespace fovea {

// What a batch, or the batches of an update, cost.
struct Cost {
  double loss = 0;  // Σ over target words of the label-smoothed cross entropy
  double nll = 0;   // Σ −log p(word)
  int64_t words = 0, sentences = 0;

  Cost& operator+=(const Cost& other);
};

// How dropout of one batch is keyed.
struct DropoutKey {
  uint64_t seed;
  int64_t drawn;
};

// Adds the gradient of the batch's loss (a sum, not a mean) to the store's gradients.
Cost add_gradient(Model& model, const PairBatch& batch, double label_smoothing, DropoutKey key);

// The cost alone, without dropout and smoothing.
Cost cost_of(const Model& model, const PairBatch& batch);

}  // namespace fovea
