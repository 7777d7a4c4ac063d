#pragma once

#include <memory>
#include <vector>

#include "attention/attention_map.h"
#include "base/computation_steps.h"
#include "models/intervention.h"
#include "models/model.h"

namespace fovea {

// A model that returns its attention weights.
class Attentive {
 public:
  // Computes all attention matrices of each sentence pair under forced decoding. Returns one list
  // of matrices per pair. If the model has no attention, the lists are empty.
  virtual std::vector<std::vector<AttentionMap>> attention(const TokenBatch& source,
                                                           const TokenBatch& target_in) const = 0;

 protected:
  ~Attentive() = default;
};

// A model whose attention can be explained and changed.
class Explainable : public Attentive {
 public:
  // Explains one row of the attention matrices step by step. The batch has one pair. REQUIRES:
  // attention() returns a matrix with this row.
  virtual ComputationSteps explain(const TokenBatch& source, const TokenBatch& target_in,
                                   const AttentionRow& row) const = 0;
  // Returns a model with the same parameters and an intervention on its attention weights. It is
  // Decodable and Attentive, for one source sentence at a time. This model must outlive it.
  // REQUIRES: the heads and positions of the intervention exist, and at least one position is not
  // masked. If the model was configured without attention, throws ExitCode::usage.
  virtual std::unique_ptr<Model> with_intervention(const WhatIf& intervention) const = 0;

 protected:
  ~Explainable() = default;
};

}  // namespace fovea
