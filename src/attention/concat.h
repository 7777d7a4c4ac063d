#pragma once

#include "attention/attention.h"
#include "ops/matmul.h"
#include "ops/shape.h"

namespace fovea {

// The score "concat" of Luong et al.: Effective Approaches to Attention-based Neural Machine
// Translation, EMNLP 2015, section 3.1. With W = [W_s W_h], the product W [s ; h] is W_s s + W_h h.
// The term W_h h does not depend on the decoder step, so it is computed once.
class ConcatScore : public ScoreFunction {
 public:
  int64_t state, memory;
  Tensor W, v;  // [A, state + memory], [A]

  struct Sizes {
    int64_t state, memory, inner;
  };
  ConcatScore(ParameterScope scope, const Sizes& n)
      : state(n.state), memory(n.memory),
        W(scope.declare("W", {n.inner, n.state + n.memory},
                        ParameterInit::glorot(n.state + n.memory, n.inner))),
        v(scope.declare("v", {n.inner}, ParameterInit::glorot(n.inner, 1))) {}

  Tensor keys(const Tensor& h) const override {
    return linear(h, columns(W, state, memory));  // W_h h_j
  }
  Tensor query_weights() const override { return columns(W, 0, state); }  // W_s
  Tensor operator()(const Tensor& s, const SourceMemory& m,
                    const RaggedQueries& look) const override {
    return additive_scores(linear(s, m.W_s), m.keys, v, look);  // e_tj = vᵀ tanh(W [s_t ; h_j])
  }
  std::string formula() const override {
    return "e_tj = v·tanh(W [s_t; h_j]) = v·tanh(W_s s_t + W_h h_j)";
  }
  std::vector<std::string> factors() const override { return {"v", "tanh"}; }
  void explain(const Tensor& s, const SourceMemory& m, ComputationSteps& steps) const override {
    steps.query("v", "v: learned weights of the score", v.values());
    add_tanh_of_sum(steps, {"W_s s_t", "W_h h_j"}, linear(s, m.W_s).values(), rows_of(m.keys));
  }
};

}  // namespace fovea
