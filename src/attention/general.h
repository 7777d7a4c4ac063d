#pragma once

#include "attention/attention.h"
#include "ops/matmul.h"

namespace fovea {

// The score "general" of Luong et al.: Effective Approaches to Attention-based Neural Machine
// Translation, EMNLP 2015, section 3.1.
class GeneralScore : public ScoreFunction {
 public:
  Tensor W;  // [state, memory]

  GeneralScore(ParameterScope scope, int64_t state, int64_t memory)
      : W(scope.declare("W", {state, memory}, ParameterInit::glorot(memory, state))) {}

  Tensor keys(const Tensor& h) const override { return linear(h, W); }  // W h_j
  Tensor operator()(const Tensor& s, const SourceMemory& memory,
                    const RaggedQueries& look) const override {
    return dot_scores(s, memory.keys, look);  // e_tj = s_tᵀ W h_j
  }
  std::string formula() const override { return "e_tj = s_t·(W h_j)"; }
  std::vector<std::string> factors() const override { return {"s_t", "W h_j"}; }
  void explain(const Tensor&, const SourceMemory& memory, ComputationSteps& steps) const override {
    steps.words("W h_j", "W h_j: encoder states, projected into the decoder's space",
                rows_of(memory.keys));
  }
};

}  // namespace fovea
