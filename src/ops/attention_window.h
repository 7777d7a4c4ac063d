#pragma once

#include "ops/dropout.h"
#include "ops/ragged_attention.h"

// Attention windows over the words of a source sentence: column ranges, the choice of one column,
// and functions of a position by which attention mechanisms multiply weights. Columns count from 0,
// positions from 1.
namespace fovea {

// The range of all words of each query's sentence or, if `reach` is not negative, of the first
// `reach` words.
ColumnRanges full_range(const RaggedQueries& ragged, int64_t reach = -1);
// The columns of `within` whose position is ⌊p + ½⌋ − D … ⌊p + ½⌋ + D. p [rows, 1] are positions.
ColumnRanges window_around(const Tensor& p, int64_t D, const ColumnRanges& within);
// The columns of `within` that are at least from[i] − slack. `from` is i32 [rows].
ColumnRanges range_from(const Tensor& from, int64_t slack, const ColumnRanges& within);

// The column of the highest entry in each row's range, or the leftmost of several such columns. −1
// if the range is empty. i32 [rows].
Tensor argmax(const Tensor& x, const ColumnRanges& ranges);
// For each row, one column of its range, sampled with the probabilities p: a pure function of p,
// the key and the row number. i32 [rows].
Tensor draw(const Tensor& p, const ColumnRanges& ranges, const Dropout& key);

// 1 at the column at[i] of row i, 0 elsewhere. If at[i] is −1, the row is 0. The shape is that of
// `as`.
Tensor one_hot(const Tensor& at, const Tensor& as);
// The values of `hard`, that is hard + soft − stop(soft). The gradient of the result flows to
// `soft` unchanged.
Tensor straight_through(const Tensor& hard, const Tensor& soft);
// log p at the column at[i] of row i; 0 if at[i] is −1. [rows, 1]
Tensor log_at(const Tensor& p, const Tensor& at);
// H = −Σ_j p_j log p_j of each row, with 0 log 0 = 0. [rows, 1]
Tensor entropy(const Tensor& p);

// The first columns of x as scores: one column per word of the longest sentence. Scores beyond the
// end of a sentence and beyond the last column of x are 0.
Tensor first_columns(const Tensor& x, const RaggedQueries& ragged);
// exp(−(j − p_i)² / (2σ²)). p [rows, 1]; the result is [rows, columns].
Tensor gaussian(const Tensor& p, double sigma, int64_t columns);
// Graves' window: φ_ij = Σ_k exp(α̂_ik − exp(β̂_ik) (κ_ik − j)²), and 0 beyond the end of a
// sentence. alpha_hat, beta_hat and kappa are [rows, K].
Tensor mixture(const Tensor& alpha_hat, const Tensor& beta_hat, const Tensor& kappa,
               const RaggedQueries& ragged);

// left_ij = 1 − min(1, covered_ij) in each row's range, 0 outside.
Tensor uncovered(const Tensor& covered, const ColumnRanges& ranges);
// softmax(e)_ij left_ij, normalised over each row's range. If every left_ij of a row is at most
// 1e-6, the last column of the range gets 1 and the row has no gradient. An entry of `left` that is
// 0 never has a gradient.
Tensor softmax_uncovered(const Tensor& e, const Tensor& left, const ColumnRanges& ranges);

}  // namespace fovea
