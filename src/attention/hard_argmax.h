#pragma once

#include "attention/attention.h"
#include "ops/attention_window.h"

namespace fovea {

// Hard attention (Xu et al.: Show, Attend and Tell, ICML 2015, section 4.1) to the most likely
// word. Training uses the straight-through estimator (Bengio et al.: Estimating or Propagating
// Gradients Through Stochastic Neurons for Conditional Computation, 2013): the gradient with
// respect to the hard weights is passed on as the gradient with respect to the soft weights.
class HardArgmaxAttention : public ScoredAttention {
 public:
  using ScoredAttention::ScoredAttention;

  AttentionResult attend(const AttentionQuery& query, const SourceMemory& memory,
                         const AttentionState& previous) const override {
    const RaggedQueries look{memory.sentences, query.sentence};
    const ColumnRanges words = full_range(look, score().reach());
    const Tensor soft = softmax_within(scores(query.s, memory, look), words);
    const Tensor k = argmax(soft, words);                           // k = arg max_j soft_tj
    const Tensor alpha = straight_through(one_hot(k, soft), soft);  // α_tj = [j = k]
    return {.context = weighted_sum(alpha, memory.h, look),         // c_t = h_k
            .weights = alpha,
            .now = {.steps = previous.steps + 1},
            .shown = {{"soft", soft}}};
  }

  std::vector<NamedSeries> series() const override { return choice_series(); }

  void explain_focus(const DoubleRow&, const AttentionState&, const AttentionResult& a,
                     ComputationSteps& steps) const override {
    explain_choice(a, steps);
  }
};

}  // namespace fovea
