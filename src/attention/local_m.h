#pragma once

#include <algorithm>
#include <vector>

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
    const Tensor p = position(before.steps + 1, look, query.s.type());
    const Ranges window = around(p, D, whole(look, score().reach()));  // [p_t − D, p_t + D]
    const Tensor alpha = softmax_within(score()(query.s, memory, look), window);
    return {.context = weighted_sum(alpha, memory.h, look),  // c_t = Σ_j α_tj h_j
            .weights = alpha,
            .now = {.steps = before.steps + 1},
            .position = p.view({p.rows()})};
  }

 private:
  // p_t = t, at most the sentence's own length. [rows, 1]
  static Tensor position(int64_t t, const Lookup& look, Type type) {
    std::vector<double> p = look.lengths().values();
    for (double& at : p) at = std::min(at, static_cast<double>(t));
    return Tensor::of({look.queries(), 1}, p, type, look.sentence.device());
  }
};

}  // namespace fovea
