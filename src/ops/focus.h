#pragma once

#include "ops/dropout.h"
#include "ops/lookup.h"

// Where on a row of words attention falls: ranges of columns, choices of one column, and the
// functions of a position that mechanisms multiply with. Columns count from 0, positions from 1.
namespace fovea {

// All words of each query's sentence; at most the first `reach` of them where it is not negative.
Ranges whole(const Lookup& look, int64_t reach = -1);
// What lies within D of round(p) = ⌊p + ½⌋, and in `within`. p [rows, 1] are positions.
Ranges around(const Tensor& p, int64_t D, const Ranges& within);
// `within` without what lies more than `slack` columns left of from[i]. i32 [rows].
Ranges onwards(const Tensor& from, int64_t slack, const Ranges& within);

// The column of the highest entry in each row's range, the smaller of equal ones; −1 where the
// range is empty. i32 [rows].
Tensor highest(const Tensor& x, const Ranges& ranges);
// A column drawn from the distribution in each row's range: a pure function of the key and of the
// row's number. i32 [rows].
Tensor draw(const Tensor& p, const Ranges& ranges, const Dropout& key);

// 1 at the column at[i] of row i, 0 elsewhere; a row of zeros where at[i] is −1. Shaped like `as`.
Tensor one_hot(const Tensor& at, const Tensor& as);
// The values of `hard`, whose gradient is handed to `soft` unchanged: hard + soft − stop(soft).
Tensor straight_through(const Tensor& hard, const Tensor& soft);
// log p at the column at[i] of row i, 0 where at[i] is −1. [rows, 1]
Tensor log_at(const Tensor& p, const Tensor& at);
// H = −Σ_j p_j log p_j of each row, with 0 log 0 = 0. [rows, 1]
Tensor entropy(const Tensor& p);

// The first columns of x as scores: 0 beyond a sentence's end and beyond the last column of x.
Tensor first_columns(const Tensor& x, const Lookup& look);
// exp(−(j − p_i)² / (2σ²)). p [rows, 1]; the result is [rows, columns].
Tensor gaussian(const Tensor& p, double sigma, int64_t columns);
// Graves' window: φ_ij = Σ_k exp(α̂_ik − exp(β̂_ik) (κ_ik − j)²), 0 beyond a sentence's end. All
// three are [rows, K].
Tensor mixture(const Tensor& alpha_hat, const Tensor& beta_hat, const Tensor& kappa,
               const Lookup& look);

// left_ij = 1 − min(1, covered_ij) in each row's range, 0 outside.
Tensor uncovered(const Tensor& covered, const Ranges& ranges);
// softmax(e)_ij left_ij, normalised over each row's range. Where nothing is left (no left_ij above
// 1e-6) the last column of the range gets 1, and no gradient flows. Nor does any to a left that
// is 0.
Tensor softmax_of_rest(const Tensor& e, const Tensor& left, const Ranges& ranges);

}  // namespace fovea
