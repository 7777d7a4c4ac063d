#pragma once

#include "attention/attention.h"
#include "ops/elementwise.h"
#include "ops/focus.h"

namespace fovea {

// Forced-forward attention: a word that was attended to is hardly considered again. What earlier
// steps have taken (the coverage of Tu et al.: Modeling Coverage for Neural Machine Translation,
// ACL 2016) is missing from what this one can take, and the focus does not go back by
// more than `slack` words:
//
//   left_tj = (1 − min(1, Σ_{u<t} α_uj)) m_tj,  m_tj = 0 for j < arg max α_{t−1} − slack
//   β_tj    = softmax(e_t)_j left_tj,           α_t = β_t / Σ_j β_tj
//
// When nothing is left, the last word of the sentence has all the weight.
class ForwardAttention : public ScoredAttention {
 public:
  int64_t slack;

  ForwardAttention(std::unique_ptr<Score> score, int64_t slack)
      : ScoredAttention(std::move(score)), slack(slack) {}

  Attended attend(const Query& query, const Memory& memory, const Before& before) const override {
    const Lookup look{memory.sentences, query.sentence};
    const Ranges words = whole(look, score().reach());
    const Tensor e = scores(query.s, memory, look);
    const Tensor alpha =
        before.weights ? softmax_of_rest(e, left(before, words), words)  // α_t = β_t / Σ_j β_tj
                       : softmax_within(e, words);                       // all is left
    const Tensor covered = before.covered ? before.covered + alpha : alpha;  // Σ_{u≤t} α_u
    return {.context = weighted_sum(alpha, memory.h, look),                  // c_t = Σ_j α_tj h_j
            .weights = alpha,
            .now = {.steps = before.steps + 1, .weights = alpha, .covered = covered}};
  }

  void explain_focus(const Row& e, const Before& before, const Attended& a,
                     Steps& steps) const override {
    steps.column("softmax", "softmax of e_tj over all words", softmax_of(e));
    if (before.weights) {
      const Ranges words{
          Tensor::of(std::vector<int32_t>{0}, a.weights.device()),
          Tensor::of(std::vector{static_cast<int32_t>(e.size())}, a.weights.device())};
      steps.column("left_tj",
                   "left_tj: what earlier steps left, 0 more than " + std::to_string(slack) +
                       " words behind the last focus",
                   left(before, words).values());
    }
    steps.column("α_tj", "α_tj = softmax · left_tj, made to sum to 1", a.weights.values(),
                 Step::Shown::share);
  }

  // Where m_tj = 1. REQUIRES: a step was made.
  Ranges allowed(const Before& before, const Ranges& words) const {
    return onwards(highest(before.weights, words), slack, words);
  }
  Tensor left(const Before& before, const Ranges& words) const {
    return uncovered(before.covered, allowed(before, words));
  }
};

}  // namespace fovea
