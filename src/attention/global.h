#pragma once

#include "attention/attention.h"
#include "ops/focus.h"

namespace fovea {

// Soft attention over the whole sentence, a new distribution at each step: Bahdanau et al., ICLR
// 2015, section 3.1; Luong et al., EMNLP 2015, section 3.1.
class GlobalAttention : public ScoredAttention {
 public:
  using ScoredAttention::ScoredAttention;

  Attended attend(const Query& query, const Memory& memory, const Before& before) const override {
    const Lookup look{memory.sentences, query.sentence};
    const Tensor e = scores(query.s, memory, look);                        // e_tj
    const Tensor alpha = softmax_within(e, whole(look, score().reach()));  // α_t = softmax(e_t)
    const Tensor c = weighted_sum(alpha, memory.h, look);                  // c_t = Σ_j α_tj h_j
    return {.context = c, .weights = alpha, .now = {.steps = before.steps + 1}};
  }
};

}  // namespace fovea
