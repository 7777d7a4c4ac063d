#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "models/batch_padding.h"
#include "models/model.h"

namespace fovea {

// A training batch in the form that a model's loss reads. If two batches have equal `sizes` and
// tensors of equal length, they need the same kernel calls (Note [Replays]). Then only the numbers
// in the tensors differ.
class PreparedBatch {
 public:
  virtual ~PreparedBatch() = default;
  std::vector<int64_t> sizes;
  int64_t scores = 0;  // length of BatchLoss::log_likelihood, with padding
};

// A model that computes its loss in two parts, so that a training step can be replayed as a CUDA
// graph. prepare() reads host memory and is not in the graph. loss_of() is in the graph and does
// not read host memory.
class Replayable {
 public:
  // Prepares a batch. It creates all device tensors by Tensor::of() (see BatchInputs).
  virtual std::unique_ptr<PreparedBatch> prepare(const TrainingBatch& batch,
                                                 BatchPadding padding) const = 0;
  // Returns Model::loss() of a prepared batch. `guided_weight` is AlignmentGuidance::weight. If the
  // batch was padded, log_likelihood has more entries than the target has words.
  virtual BatchLoss loss_of(const PreparedBatch& batch, double label_smoothing,
                            double guided_weight) const = 0;

 protected:
  ~Replayable() = default;
};

}  // namespace fovea
