#pragma once

#include "attention/attention.h"
#include "ops/attention_window.h"
#include "ops/elementwise.h"
#include "ops/matmul.h"

namespace fovea {

// Local attention with predicted alignment (local-p): Luong et al.: Effective Approaches to
// Attention-based Neural Machine Translation, EMNLP 2015, section 3.2, eq. 9 and 10. As in the
// paper, the weights are not normalised again after the Gaussian. No gradient passes through the
// rounding of p_t.
class LocalPredictiveAttention : public ScoredAttention {
 public:
  int64_t D;
  Tensor W_p, v_p;  // [P, state], [1, P]

  struct Sizes {
    int64_t state, inner, window;
  };
  LocalPredictiveAttention(ParameterScope scope, std::unique_ptr<ScoreFunction> score,
                           const Sizes& n)
      : ScoredAttention(std::move(score)), D(n.window),
        W_p(scope.declare("W_p", {n.inner, n.state}, ParameterInit::glorot(n.state, n.inner))),
        v_p(scope.declare("v_p", {1, n.inner}, ParameterInit::glorot(n.inner, 1))) {}

  AttentionResult attend(const AttentionQuery& query, const SourceMemory& memory,
                         const AttentionState& previous) const override {
    const RaggedQueries look{memory.sentences, query.sentence};
    const Tensor S = look.lengths_as(query.s.type(), look.columns());
    const double sigma = static_cast<double>(D) / 2;
    const Tensor p =
        S * sigmoid(linear(tanh(linear(query.s, W_p)), v_p));  // S σ(v_pᵀ tanh(W_p s_t))
    const ColumnRanges window =
        window_around(p, D, full_range(look, score().reach()));  // [p_t − D, p_t + D]
    const Tensor near = softmax_within(scores(query.s, memory, look), window);  // align(s_t, h_j)
    const Tensor alpha = near * gaussian(p, sigma, look.columns());  // · exp(−(j − p_t)² / 2σ²)
    return {.context = weighted_sum(alpha, memory.h, look),          // c_t = Σ_j α_tj h_j
            .weights = alpha,
            .now = {.steps = previous.steps + 1},
            .shown = {{"near", near}, {"p_t", p.view({p.rows()})}}};
  }

  std::vector<NamedSeries> series() const override {
    using Kind = NamedSeries::Kind;
    const auto width = static_cast<float>(D);
    return {{"p_t", "p_t", Kind::position},
            {"window", "D", Kind::half_width, {width}},
            {"sigma", "σ", Kind::deviation, {width / 2}}};  // σ = D / 2
  }

  void explain_focus(const DoubleRow&, const AttentionState&, const AttentionResult& a,
                     ComputationSteps& steps) const override {
    const std::string width = std::to_string(D);
    steps.query("p_t", "p_t = S sigmoid(v_p·tanh(W_p s_t)): the centre of the window",
                a.shown["p_t"].values());
    steps.column("softmax", "softmax over words at most " + width + " from p_t, 0 elsewhere",
                 a.shown["near"].values());
    steps.column("α_tj", "α_tj = softmax · exp(−(j − p_t)² / 2σ²), σ = " + width + " / 2",
                 a.weights.values(), ComputationStep::Display::share);
  }
};

}  // namespace fovea
