#pragma once

#include "ops/dropout.h"
#include "ops/ragged_attention.h"

// Attention windows over the words of a source sentence: ranges of columns, the choice of one
// column, and functions of the position that attention mechanisms multiply with weights. Columns
// count from 0, positions from 1.
namespace fovea {

// For each query, the range of all words of its sentence. If `reach` is not negative, only the
// first `reach` words.
ColumnRanges full_range(const RaggedQueries& ragged, int64_t reach = -1);
// The columns of `within` that have a position in ⌊p + ½⌋ − D … ⌊p + ½⌋ + D. p [rows, 1] holds
// positions.
ColumnRanges window_around(const Tensor& p, int64_t D, const ColumnRanges& within);
// For each row i, the columns of `within` from from[i] − slack on. `from` is i32 [rows].
ColumnRanges range_from(const Tensor& from, int64_t slack, const ColumnRanges& within);

// For each row, the column of the highest entry in its range. If several entries are highest, the
// leftmost column. If the range is empty, −1. i32 [rows].
Tensor argmax(const Tensor& x, const ColumnRanges& ranges);
// For each row, one column of its range, sampled with the probabilities p. The result depends only
// on p, the key and the index of the row. i32 [rows].
Tensor draw(const Tensor& p, const ColumnRanges& ranges, const Dropout& key);

// Row i is 1 at column at[i] and 0 elsewhere. If at[i] is −1, the whole row is 0. The result has
// the shape of `as`.
Tensor one_hot(const Tensor& at, const Tensor& as);
// The straight-through estimator hard + soft − stop(soft): the result has the values of `hard`, and
// its gradient flows unchanged to `soft`.
Tensor straight_through(const Tensor& hard, const Tensor& soft);
// log p at the column at[i] of row i; 0 if at[i] is −1. [rows, 1]
Tensor log_at(const Tensor& p, const Tensor& at);
// H = −Σ_j p_j log p_j of each row, with 0 log 0 = 0. [rows, 1]
Tensor entropy(const Tensor& p);

// The first columns of x as scores, one column per word of the longest sentence. If x has no such
// column or the sentence has no such word, the score is 0.
Tensor first_columns(const Tensor& x, const RaggedQueries& ragged);
// exp(−(j − p_i)² / (2σ²)). p [rows, 1]; the result is [rows, columns].
Tensor gaussian(const Tensor& p, double sigma, int64_t columns);
// Graves' window: φ_ij = Σ_k exp(α̂_ik − exp(β̂_ik) (κ_ik − j)²), and 0 beyond the end of the
// sentence. alpha_hat, beta_hat and kappa are [rows, K].
Tensor mixture(const Tensor& alpha_hat, const Tensor& beta_hat, const Tensor& kappa,
               const RaggedQueries& ragged);

// left_ij = 1 − min(1, covered_ij) in each row's range, 0 outside.
Tensor uncovered(const Tensor& covered, const ColumnRanges& ranges);
// softmax(e)_ij left_ij, normalised over each row's range. If every left_ij of a row is at most
// 1e-6, the last column of the row's range gets 1, and the row has no gradient. If an entry of
// `left` is 0, it has no gradient.
Tensor softmax_uncovered(const Tensor& e, const Tensor& left, const ColumnRanges& ranges);

}  // namespace fovea
