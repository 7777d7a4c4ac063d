#pragma once

#include "ops/packing.h"
#include "tensor/tensor.h"

namespace fovea {

// Who looks where: query i looks at the words of sentence `sentence[i]`, which stand one after
// another as `memory` says. Scores and weights have a column per word of the longest sentence;
// columns beyond a sentence's end hold 0.
struct Lookup {
  Packing memory;
  Tensor sentence;  // i32 [queries]

  int64_t queries() const { return sentence.elements(); }
  int64_t columns() const { return memory.longest; }
  Tensor lengths() const;  // i32 [queries]: words of the sentence each query looks at
  // [queries, 1]: the same as numbers, at most `most`.
  Tensor lengths_as(Type type, int64_t most) const;
};

// e_ij = q_i · k_j. q [queries, A], keys [words, A].
Tensor dot_scores(const Tensor& q, const Tensor& keys, const Lookup& look);
// e_ij = v · tanh(q_i + k_j). v [A].
Tensor additive_scores(const Tensor& q, const Tensor& keys, const Tensor& v, const Lookup& look);

// Columns low[i] ≤ j < high[i] of each row; i32 [queries] each.
struct Ranges {
  Tensor low, high;
};
// softmax over each row's range, exactly 0 outside. A row whose range is empty is all 0.
Tensor softmax_within(const Tensor& e, const Ranges& ranges);

// c_i = Σ_j α_ij h_j. alpha [queries, columns], h [words, D]. What alpha holds beyond the end of a
// sentence is not read.
Tensor weighted_sum(const Tensor& alpha, const Tensor& h, const Lookup& look);

// The same by plain ops, one query after another.
Tensor additive_scores_reference(const Tensor& q, const Tensor& keys, const Tensor& v,
                                 const Lookup& look);
Tensor weighted_sum_reference(const Tensor& alpha, const Tensor& h, const Lookup& look);

}  // namespace fovea
