#pragma once

#include "attention/attention.h"
#include "ops/focus.h"

namespace fovea {

// Luong et al.: Effective Approaches to Attention-based Neural Machine Translation, EMNLP 2015,
// section 3.2, monotonic alignment (local-m): word t of the translation looks around word t of the
// source.
class LocalMonotonicAttention : public ScoredAttention {
 public:
  int64_t D;

  LocalMonotonicAttention(std::unique_ptr<Score> score, int64_t D)
      : ScoredAttention(std::move(score)), D(D) {}

  Attended attend(const Query& query, const Memory& memory, const Before& before) const override {
    const Lookup look{memory.sentences, query.sentence};
    const Tensor p = look.lengths_as(query.s.type(), before.steps + 1);  // t, or the last word
    const Ranges window = around(p, D, whole(look, score().reach()));    // [p_t − D, p_t + D]
    const Tensor alpha = softmax_within(scores(query.s, memory, look), window);
    return {.context = weighted_sum(alpha, memory.h, look),  // c_t = Σ_j α_tj h_j
            .weights = alpha,
            .now = {.steps = before.steps + 1},
            .position = p.view({p.rows()})};
  }

  void explain_focus(const Row&, const Before&, const Attended& a, Steps& steps) const override {
    steps.query("p_t", "p_t = t, or the last word: the middle of what is looked at",
                a.position.values());
    steps.column(
        "α_tj", "α_tj = softmax over words at most " + std::to_string(D) + " from p_t, 0 elsewhere",
        a.weights.values(), Step::Shown::share);
  }
};

}  // namespace fovea
