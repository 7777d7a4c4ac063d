#pragma once

#include "attention/attention.h"
#include "ops/attention_window.h"

namespace fovea {

// Soft attention over the whole sentence, with a new distribution at each step: Bahdanau et al.,
// ICLR 2015, section 3.1; Luong et al., EMNLP 2015, section 3.1.
class GlobalAttention : public ScoredAttention {
 public:
  using ScoredAttention::ScoredAttention;

  AttentionResult attend(const AttentionQuery& query, const SourceMemory& memory,
                         const AttentionState& previous) const override {
    const RaggedQueries look{memory.sentences, query.sentence};
    const Tensor e = scores(query.s, memory, look);  // e_tj
    const Tensor alpha =
        softmax_within(e, full_range(look, score().reach()));  // α_t = softmax(e_t)
    const Tensor c = weighted_sum(alpha, memory.h, look);      // c_t = Σ_j α_tj h_j
    return {.context = c, .weights = alpha, .now = {.steps = previous.steps + 1}};
  }
};

}  // namespace fovea
