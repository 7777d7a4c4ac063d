#pragma once

#include "attention/attention.h"
#include "ops/elementwise.h"
#include "ops/focus.h"
#include "ops/matmul.h"

namespace fovea {

// Luong et al.: Effective Approaches to Attention-based Neural Machine Translation, EMNLP 2015,
// section 3.2, predictive alignment (local-p), eq. 9 and 10. The weights are not normalised again
// after the Gaussian, as published; no gradient passes through the rounding of p_t.
class LocalPredictiveAttention : public ScoredAttention {
 public:
  int64_t D;
  Tensor W_p, v_p;  // [P, state], [1, P]

  struct Sizes {
    int64_t state, inner, window;
  };
  LocalPredictiveAttention(Scope scope, std::unique_ptr<Score> score, const Sizes& n)
      : ScoredAttention(std::move(score)), D(n.window),
        W_p(scope.declare("W_p", {n.inner, n.state}, Init::glorot(n.state, n.inner))),
        v_p(scope.declare("v_p", {1, n.inner}, Init::glorot(n.inner, 1))) {}

  Attended attend(const Query& query, const Memory& memory, const Before& before) const override {
    const Lookup look{memory.sentences, query.sentence};
    const Tensor S = look.lengths_as(query.s.type(), look.columns());
    const double sigma = static_cast<double>(D) / 2;
    const Tensor p =
        S * sigmoid(linear(tanh(linear(query.s, W_p)), v_p));          // S σ(v_pᵀ tanh(W_p s_t))
    const Ranges window = around(p, D, whole(look, score().reach()));  // [p_t − D, p_t + D]
    const Tensor near = softmax_within(scores(query.s, memory, look), window);  // align(s_t, h_j)
    const Tensor alpha = near * gaussian(p, sigma, look.columns());  // · exp(−(j − p_t)² / 2σ²)
    return {.context = weighted_sum(alpha, memory.h, look),          // c_t = Σ_j α_tj h_j
            .weights = alpha,
            .now = {.steps = before.steps + 1},
            .soft = near,
            .position = p.view({p.rows()})};
  }

  void explain_focus(const Row&, const Before&, const Attended& a, Steps& steps) const override {
    const std::string width = std::to_string(D);
    steps.query("p_t", "p_t = S sigmoid(v_p·tanh(W_p s_t)): the middle of what is looked at",
                a.position.values());
    steps.column("softmax", "softmax over words at most " + width + " from p_t, 0 elsewhere",
                 a.soft.values());
    steps.column("α_tj", "α_tj = softmax · exp(−(j − p_t)² / 2σ²), σ = " + width + " / 2",
                 a.weights.values(), Step::Shown::share);
  }
};

}  // namespace fovea
