#pragma once

#include "attention/attention.h"
#include "ops/matmul.h"
#include "ops/recurrent_linear.h"

namespace fovea {

// The score of Bahdanau et al.: Neural Machine Translation by Jointly Learning to Align and
// Translate, ICLR 2015, appendix A.1.2.
class AdditiveScore : public ScoreFunction {
 public:
  Tensor W_a, U_a, v;  // [A, state], [A, memory], [A]

  struct Sizes {
    int64_t state, memory, inner;
  };
  AdditiveScore(ParameterScope scope, const Sizes& n)
      : W_a(scope.declare("W_a", {n.inner, n.state}, ParameterInit::glorot(n.state, n.inner))),
        U_a(scope.declare("U_a", {n.inner, n.memory}, ParameterInit::glorot(n.memory, n.inner))),
        v(scope.declare("v", {n.inner}, ParameterInit::glorot(n.inner, 1))) {}

  Tensor keys(const Tensor& h) const override { return linear(h, U_a); }  // U_a h_j
  Tensor operator()(const Tensor& s, const SourceMemory& memory,
                    const RaggedQueries& look) const override {
    const Tensor q = step_linear(s, W_a);
    return additive_scores(q, memory.keys, v, look);  // e_tj = vᵀ tanh(W_a s_t + U_a h_j)
  }
  std::string formula() const override { return "e_tj = v·tanh(W_a s_t + U_a h_j)"; }
  std::vector<std::string> factors() const override { return {"v", "tanh"}; }
  void explain(const Tensor& s, const SourceMemory& memory,
               ComputationSteps& steps) const override {
    steps.query("v", "v: learned weights of the score", v.values());
    add_tanh_of_sum(steps, {"W_a s_t", "U_a h_j"}, linear(s, W_a).values(), rows_of(memory.keys));
  }
};

}  // namespace fovea
