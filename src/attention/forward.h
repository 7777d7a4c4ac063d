#pragma once

#include "attention/attention.h"
#include "ops/attention_window.h"
#include "ops/elementwise.h"

namespace fovea {

// Forced-forward attention: the focus may move back by at most `slack` words. The weight that a
// word received at earlier steps (its coverage, Tu et al.: Modeling Coverage for Neural Machine
// Translation, ACL 2016) reduces the weight that it can receive now:
//
//   left_tj = (1 − min(1, Σ_{u<t} α_uj)) m_tj,  m_tj = 0 for j < arg max α_{t−1} − slack
//   β_tj    = softmax(e_t)_j left_tj,           α_t = β_t / Σ_j β_tj
//
// If all β_tj are 0, the last word of the sentence has all the weight.
class ForwardAttention : public ScoredAttention {
 public:
  int64_t slack;

  ForwardAttention(std::unique_ptr<ScoreFunction> score, int64_t slack)
      : ScoredAttention(std::move(score)), slack(slack) {}

  AttentionResult attend(const AttentionQuery& query, const SourceMemory& memory,
                         const AttentionState& previous) const override {
    const RaggedQueries look{memory.sentences, query.sentence};
    const ColumnRanges words = full_range(look, score().reach());
    const Tensor e = scores(query.s, memory, look);
    const bool first = !previous["weights"];
    const ColumnRanges ahead = first ? words : allowed(previous, words);
    const Tensor alpha = first ? softmax_within(e, words)  // left_1j = 1
                               : softmax_uncovered(e, uncovered(previous["covered"], ahead),
                                                   words);   // α_t = β_t / Σ_j β_tj
    return {.context = weighted_sum(alpha, memory.h, look),  // c_t = Σ_j α_tj h_j
            .weights = alpha,
            .now = after(previous, alpha),
            .shown = {{"frontier", ahead.low}}};
  }

  std::vector<NamedSeries> series() const override {
    return {{"frontier", "frontier", NamedSeries::Kind::frontier}};
  }
  AttentionState reweighted(const AttentionState& previous,
                            const AttentionResult& result) const override {
    return after(previous, result.weights);
  }
  bool keeps_weight() const override { return true; }

  void explain_focus(const DoubleRow& e, const AttentionState& previous, const AttentionResult& a,
                     ComputationSteps& steps) const override {
    steps.column("softmax", "softmax of e_tj over all words", softmax_of(e));
    if (previous["weights"]) {
      const ColumnRanges words{
          Tensor::of(std::vector<int32_t>{0}, a.weights.device()),
          Tensor::of(std::vector{static_cast<int32_t>(e.size())}, a.weights.device())};
      steps.column("left_tj",
                   "left_tj: weight that earlier steps left; 0 more than " + std::to_string(slack) +
                       " words behind the last focus",
                   left(previous, words).values());
    }
    steps.column("α_tj", "α_tj = softmax · left_tj, normalised to sum to 1", a.weights.values(),
                 ComputationStep::Display::share);
  }

  // The columns j with m_tj = 1. REQUIRES: `previous` is not the state before the first step.
  ColumnRanges allowed(const AttentionState& previous, const ColumnRanges& words) const {
    return range_from(argmax(previous["weights"], words), slack, words);
  }
  Tensor left(const AttentionState& previous, const ColumnRanges& words) const {
    return uncovered(previous["covered"], allowed(previous, words));
  }

 private:
  static AttentionState after(const AttentionState& previous, const Tensor& alpha) {
    const Tensor covered = previous["covered"];
    return {.steps = previous.steps + 1,
            .tensors = {{"weights", alpha},
                        {"covered", covered ? covered + alpha : alpha}}};  // Σ_{u≤t} α_u
  }
};

}  // namespace fovea
