#pragma once

#include "attention/attention.h"
#include "ops/attention_window.h"

namespace fovea {

// Local attention with monotonic alignment (local-m): word t of the target attends to a window
// around word t of the source. Luong et al.: Effective Approaches to Attention-based Neural Machine
// Translation, EMNLP 2015, section 3.2.
class LocalMonotonicAttention : public ScoredAttention {
 public:
  int64_t D;

  LocalMonotonicAttention(std::unique_ptr<ScoreFunction> score, int64_t D)
      : ScoredAttention(std::move(score)), D(D) {}

  AttentionResult attend(const AttentionQuery& query, const SourceMemory& memory,
                         const AttentionState& previous) const override {
    const RaggedQueries look{memory.sentences, query.sentence};
    const Tensor p = look.lengths_as(query.s.type(), previous.steps + 1);  // min(t, last word)
    const ColumnRanges window =
        window_around(p, D, full_range(look, score().reach()));  // [p_t − D, p_t + D]
    const Tensor alpha = softmax_within(scores(query.s, memory, look), window);
    return {.context = weighted_sum(alpha, memory.h, look),  // c_t = Σ_j α_tj h_j
            .weights = alpha,
            .now = {.steps = previous.steps + 1},
            .shown = {{"p_t", p.view({p.rows()})}}};
  }

  std::vector<NamedSeries> series() const override {
    using Kind = NamedSeries::Kind;
    return {{"p_t", "p_t", Kind::position},
            {"window", "D", Kind::half_width, {static_cast<float>(D)}}};
  }

  void explain_focus(const DoubleRow&, const AttentionState&, const AttentionResult& a,
                     ComputationSteps& steps) const override {
    steps.query("p_t", "p_t = t, or the last word: the centre of the window",
                a.shown["p_t"].values());
    steps.column(
        "α_tj", "α_tj = softmax over words at most " + std::to_string(D) + " from p_t, 0 elsewhere",
        a.weights.values(), ComputationStep::Display::share);
  }
};

}  // namespace fovea
