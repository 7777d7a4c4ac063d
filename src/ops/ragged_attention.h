#pragma once

#include "ops/packing.h"
#include "tensor/tensor.h"

namespace fovea {

// Queries, each with its source sentence: query i attends to the words of sentence `sentence[i]`.
// `memory` holds the boundaries of the sentences in the matrix of words. Scores and weights have
// one column per word of the longest sentence. Columns beyond the end of a query's sentence are 0.
struct RaggedQueries {
  SentenceOffsets memory;
  Tensor sentence;  // i32 [queries]

  int64_t queries() const { return sentence.elements(); }
  int64_t columns() const { return memory.longest; }
  Tensor lengths() const;  // i32 [queries]: number of words in the sentence of each query
  // [queries, 1]: min(lengths(), most) as numbers of the given type.
  Tensor lengths_as(ElementType type, int64_t most) const;
};

// e_ij = q_i · k_j. q [queries, A], keys [words, A].
Tensor dot_scores(const Tensor& q, const Tensor& keys, const RaggedQueries& ragged);
// e_ij = v · tanh(q_i + k_j). v [A].
Tensor additive_scores(const Tensor& q, const Tensor& keys, const Tensor& v,
                       const RaggedQueries& ragged);

// For each row i the columns low[i] ≤ j < high[i]; both are i32 [queries].
struct ColumnRanges {
  Tensor low, high;
};
// softmax over the columns in each row's range; columns outside are exactly 0. If a range is empty,
// its row is 0.
Tensor softmax_within(const Tensor& e, const ColumnRanges& ranges);

// c_i = Σ_j α_ij h_j. alpha [queries, columns], h [words, D]. Columns of alpha beyond the end of a
// sentence are not read.
Tensor weighted_sum(const Tensor& alpha, const Tensor& h, const RaggedQueries& ragged);

// additive_scores() and weighted_sum() computed from plain operations, one query after another: the
// reference for tests.
Tensor additive_scores_reference(const Tensor& q, const Tensor& keys, const Tensor& v,
                                 const RaggedQueries& ragged);
Tensor weighted_sum_reference(const Tensor& alpha, const Tensor& h, const RaggedQueries& ragged);

}  // namespace fovea
