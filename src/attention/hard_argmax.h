#pragma once

#include "attention/attention.h"
#include "ops/focus.h"

namespace fovea {

// Hard attention (Xu et al.: Show, Attend and Tell, ICML 2015, section 4.1) at the most likely
// word, trained by the straight-through estimator (Bengio et al.: Estimating or Propagating
// Gradients Through Stochastic Neurons for Conditional Computation, 2013): the soft weights take
// the gradient of the hard ones as their own.
class HardArgmaxAttention : public ScoredAttention {
 public:
  using ScoredAttention::ScoredAttention;

  Attended attend(const Query& query, const Memory& memory, const Before& before) const override {
    const Lookup look{memory.sentences, query.sentence};
    const Ranges words = whole(look, score().reach());
    const Tensor soft = softmax_within(scores(query.s, memory, look), words);
    const Tensor k = highest(soft, words);                          // k = arg max_j soft_tj
    const Tensor alpha = straight_through(one_hot(k, soft), soft);  // α_tj = [j = k]
    return {.context = weighted_sum(alpha, memory.h, look),         // c_t = h_k
            .weights = alpha,
            .now = {.steps = before.steps + 1},
            .soft = soft};
  }

  void explain_focus(const Row&, const Before&, const Attended& a, Steps& steps) const override {
    explain_choice(a, steps);
  }
};

}  // namespace fovea
