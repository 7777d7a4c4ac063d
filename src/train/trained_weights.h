#pragma once

#include "models/low_rank_adapter.h"
#include "models/model.h"
#include "ops/dropout.h"
#include "ops/matmul.h"

namespace fovea {

// The weights that training changes: the parameters of a model, or those of an adapter of it. In
// the second case the parameters of the model follow from them: see LowRankAdapter. Model and
// adapter outlive this object.
class TrainedWeights {
 public:
  TrainedWeights(Model& model) : model_(model) {}
  TrainedWeights(Model& model, LowRankAdapter& adapter, double dropout)
      : model_(model), adapter_(&adapter), dropout_(dropout) {}

  Model& model() const { return model_; }
  bool adapts() const { return adapter_ != nullptr; }
  // What the optimiser updates and checkpoints hold.
  ParameterStore& store() const { return adapter_ ? adapter_->parameters() : model_.parameters(); }

  // Before and after the loss and its gradient are computed. `after_gradient` adds to the gradients
  // of store(). The DropoutScope of the batch is alive during before_loss().
  void before_loss() {
    if (!adapter_) return;
    model_.parameters().gradients().fill(0);
    key_ = dropout_key(dropout_);
    if (key_.on()) adapter_->merge(key_);
  }
  void after_gradient() const {
    if (adapter_) adapter_->add_gradients(key_);
  }
  // After the values of store() were changed, and after an update, whether it was made or not.
  void changed() const { adapter_ ? adapter_->merge() : parameters_changed(); }

 private:
  Model& model_;
  LowRankAdapter* adapter_ = nullptr;
  double dropout_ = 0;  // of A
  Dropout key_;         // of the newest batch
};

}  // namespace fovea
