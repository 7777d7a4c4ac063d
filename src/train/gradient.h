#pragma once

#include <cstdint>
#include <span>

#include "models/model.h"
#include "text/batch.h"
#include "train/trained_weights.h"

namespace fovea {

// The loss of a batch, or of all batches of an update.
struct BatchCost {
  double loss = 0;  // Σ over target words of the label-smoothed cross entropy
  double nll = 0;   // Σ −log p(word)
  int64_t words = 0, sentences = 0;
  double guided = 0;         // Σ over guided words of the mean of −log α over their links
  int64_t guided_words = 0;  // number of target words with given links

  BatchCost& operator+=(const BatchCost& other);
};

// The weights of the parts of a loss.
struct LossOptions {
  double label_smoothing = 0;
  double guided_weight = 0;  // weight of BatchCost::guided, if the batch has alignments
};

// The key of the dropout masks of one batch.
struct DropoutKey {
  uint64_t seed;
  int64_t drawn;  // number of batches that training used before this batch
};

// Adds the gradient of the loss of the batch to the gradients of the trained weights, and returns
// the loss. The loss is a sum over words, not a mean.
BatchCost add_gradient(TrainedWeights weights, const PairBatch& batch, const LossOptions& options,
                       DropoutKey key);

// Converts a batch to the input of Model::loss(). Includes the alignments if guided_weight is not
// 0.
TrainingBatch training_batch(const PairBatch& batch, const LossOptions& options);

// The losses that a model computed for a batch.
struct ComputedLoss {
  double loss = 0, guided = 0;
  std::span<const double> log_likelihood;  // of the target words, maybe followed by padding
};
BatchCost cost_from(const PairBatch& batch, const LossOptions& options,
                    const ComputedLoss& computed);

// Computes the loss of a batch without gradient, dropout and label smoothing.
BatchCost cost_of(const Model& model, const PairBatch& batch);

}  // namespace fovea
