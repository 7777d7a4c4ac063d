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
  int64_t scores = 0;  // length of BatchLoss::log_likelihood, padding included
};

// A model that computes its loss in two parts, so that a training step can be replayed as a CUDA
// graph. prepare() reads host memory. loss_of() does not, and only loss_of() is in the graph.
class Replayable {
 public:
  // Creates all device tensors with Tensor::of().
  virtual std::unique_ptr<PreparedBatch> prepare(const TrainingBatch& batch,
                                                 BatchPadding padding) const = 0;
  // Model::loss() of a prepared batch. `guided_weight` is AlignmentGuidance::weight. If the batch
  // was padded, log_likelihood is longer than the target.
  virtual BatchLoss loss_of(const PreparedBatch& batch, double label_smoothing,
                            double guided_weight) const = 0;

 protected:
  ~Replayable() = default;
};

}  // namespace fovea
