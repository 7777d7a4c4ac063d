#pragma once

#include "attention/attention.h"
#include "ops/matmul.h"

namespace fovea {

// Luong et al.: Effective Approaches to Attention-based Neural Machine Translation, EMNLP 2015,
// section 3.1, "general".
class GeneralScore : public Score {
 public:
  Tensor W;  // [state, memory]

  GeneralScore(Scope scope, int64_t state, int64_t memory)
      : W(scope.declare("W", {state, memory}, Init::glorot(memory, state))) {}

  Tensor keys(const Tensor& h) const override { return linear(h, W); }  // W h_j
  Tensor operator()(const Tensor& s, const Memory& memory, const Lookup& look) const override {
    return dot_scores(s, memory.keys, look);  // e_tj = s_tᵀ W h_j
  }
  std::string formula() const override { return "e_tj = s_t·(W h_j)"; }
  std::vector<std::string> factors() const override { return {"s_t", "W h_j"}; }
  void explain(const Tensor&, const Memory& memory, Steps& steps) const override {
    steps.words("W h_j", "W h_j: encoder states, projected into the decoder's space",
                rows_of(memory.keys));
  }
};

}  // namespace fovea
