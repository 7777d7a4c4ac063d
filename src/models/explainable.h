#pragma once

#include <memory>
#include <vector>

#include "attention/attention_map.h"
#include "base/computation_steps.h"
#include "models/intervention.h"
#include "models/model.h"

namespace fovea {

// A model whose attention can be read.
class Attentive {
 public:
  // All attention matrices of each sentence pair under forced decoding. The result has one list per
  // pair. The lists are empty if the model has no attention.
  virtual std::vector<std::vector<AttentionMap>> attention(const TokenBatch& source,
                                                           const TokenBatch& target_in) const = 0;

 protected:
  ~Attentive() = default;
};

// A model whose attention can be explained and changed.
class Explainable : public Attentive {
 public:
  // The step-by-step explanation of one row of the attention matrices. The batch has one pair.
  // REQUIRES: attention() has such a row.
  virtual ComputationSteps explain(const TokenBatch& source, const TokenBatch& target_in,
                                   const AttentionRow& row) const = 0;
  // A model with the parameters of this one and an intervention on its attention weights. It is
  // Decodable and Attentive, for one source sentence at a time. This model must outlive it.
  // REQUIRES: the named heads and positions exist, and at least one position is not masked. Fails
  // with ExitCode::usage if the model was configured without attention.
  virtual std::unique_ptr<Model> with_intervention(const WhatIf& intervention) const = 0;

 protected:
  ~Explainable() = default;
};

}  // namespace fovea
