#pragma once

#include "ops/packing.h"
#include "tensor/tensor.h"

namespace fovea {

// The source sentence of each query: query i attends to the words of sentence `sentence[i]`.
// `memory` holds the boundaries of the sentences. Scores and weights have one column per word of
// the longest sentence; columns beyond the end of a sentence are 0.
struct RaggedQueries {
  SentenceOffsets memory;
  Tensor sentence;  // i32 [queries]

  int64_t queries() const { return sentence.elements(); }
  int64_t columns() const { return memory.longest; }
  Tensor lengths() const;  // i32 [queries]: words in the sentence of each query
  // [queries, 1]: min(lengths(), most) as numbers of the given type.
  Tensor lengths_as(ElementType type, int64_t most) const;
};

// e_ij = q_i · k_j. q [queries, A], keys [words, A].
Tensor dot_scores(const Tensor& q, const Tensor& keys, const RaggedQueries& ragged);
// e_ij = v · tanh(q_i + k_j). v [A].
Tensor additive_scores(const Tensor& q, const Tensor& keys, const Tensor& v,
                       const RaggedQueries& ragged);

// Columns low[i] ≤ j < high[i] of each row; i32 [queries] each.
struct ColumnRanges {
  Tensor low, high;
};
// softmax over each row's range, exactly 0 outside. A row whose range is empty is all 0.
Tensor softmax_within(const Tensor& e, const ColumnRanges& ranges);

// c_i = Σ_j α_ij h_j. alpha [queries, columns], h [words, D]. Entries of alpha beyond the end of a
// sentence are not read.
Tensor weighted_sum(const Tensor& alpha, const Tensor& h, const RaggedQueries& ragged);

// additive_scores() and weighted_sum() from plain operations, one query after another: the
// reference for tests.
Tensor additive_scores_reference(const Tensor& q, const Tensor& keys, const Tensor& v,
                                 const RaggedQueries& ragged);
Tensor weighted_sum_reference(const Tensor& alpha, const Tensor& h, const RaggedQueries& ragged);

}  // namespace fovea
