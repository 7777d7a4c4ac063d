#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "models/batch_padding.h"
#include "models/model.h"

namespace fovea {

// A training batch in the form that a model's loss reads. Batches with equal `sizes` and tensors of
// equal length need the same kernel calls (Note [Replays]); only the numbers in the tensors differ.
class PreparedBatch {
 public:
  virtual ~PreparedBatch() = default;
  std::vector<int64_t> sizes;
  int64_t scores = 0;  // length of log_likelihood
};

// A model whose loss has two halves, so that a training step can be replayed as a CUDA graph: the
// first half reads host memory, and the graph contains only the second half.
class Replayable {
 public:
  // Creates all device tensors with Tensor::of().
  virtual std::unique_ptr<PreparedBatch> prepare(const TrainingBatch& batch,
                                                 BatchPadding padding) const = 0;
  // Model::loss() of the batch, without reading host memory. Its log_likelihood is longer than the
  // target if the batch was padded.
  virtual BatchLoss loss_of(const PreparedBatch& batch, double label_smoothing,
                            double guided_weight) const = 0;

 protected:
  ~Replayable() = default;
};

}  // namespace fovea
