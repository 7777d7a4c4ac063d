#pragma once

#include <span>
#include <vector>

#include "tensor/tensor.h"

namespace fovea {

// The row order of recurrent networks, without padding: the first words of all sentences, then all
// second words, and so on. The sentences are sorted by descending length. So at time t only the
// first alive(t) sentences have a word; its rows are first[t] … first[t + 1] − 1. No sentence is
// empty.
struct TimeMajor {
  std::vector<int64_t> first;  // [times + 1]: index of the first row of each time
  std::vector<int32_t> order;  // order[i]: index in the batch of the i-th longest sentence
  Tensor from;                 // i32 [tokens]: row r in this order is row from[r] in sentence order
  Tensor to;                   // row p in sentence order is row to[p] in this order
  Tensor ends;                 // i32 [sentences]: row of the last word of sentence order[i]
  std::vector<int32_t> words;  // a copy of `from` on the host

  // If sentences have padding: a permutation of rows that reverses the words of each sentence and
  // leaves its padding in place. It is its own inverse. Absent if there is no padding.
  Tensor turned;

  static TimeMajor of(std::span<const int32_t> offsets, Device device = Cpu{});
  // Like the constructor, for sentences with padding: only the first lengths[b] rows of sentence b
  // are words. `ends` holds the rows of the last words before the padding.
  static TimeMajor filled(std::span<const int32_t> offsets, std::span<const int32_t> lengths,
                          Device device);
  int64_t times() const { return static_cast<int64_t>(first.size()) - 1; }
  int64_t alive(int64_t t) const { return first[t + 1] - first[t]; }
  int64_t sentences() const { return static_cast<int64_t>(order.size()); }
  int64_t tokens() const { return first.back(); }
};

// Row i of the result is row index[i] of x. `index` is i32; it may repeat or omit rows of x.
Tensor rows_at(const Tensor& x, const Tensor& index);

// Like rows_at(). REQUIRES: `index` is a permutation that is its own inverse, as TimeMajor::turned
// is. So the gradient reads rows by the same index, which is faster.
Tensor permuted_rows(const Tensor& x, const Tensor& index);

enum class Cell { rnn, lstm, gru, gru_after };

// The number of gates. Their matrices are stacked as rows of W, U and b: LSTM i, f, g, o; GRU r, z,
// n.
inline int64_t gates(Cell cell) { return cell == Cell::rnn ? 1 : cell == Cell::lstm ? 4 : 3; }
// The number of columns of a state: h of size H; for an LSTM h and then c.
inline int64_t state_width(Cell cell, int64_t H) { return cell == Cell::lstm ? 2 * H : H; }

// The recurrent weights of a cell. `gru` (Cho 2014) applies the reset gate before the product: U_n
// (r ∘ h). `gru_after` (cuDNN, PyTorch) applies it after the product: r ∘ (U_n h + b_n). Only
// gru_after has a bias b_n.
struct RecurrentWeights {
  Cell cell;
  Tensor U;    // [gates · H, H]
  Tensor b_n;  // [H], gru_after only
};

enum class Direction { forward, backward };

// The states of all rows, [tokens, state_width]. `x` [tokens, gates · H] holds W times the input of
// each row, plus b. `start` [sentences, state_width] is the state before the first word in this
// direction. If it is absent, that state is 0. Direction::backward starts at the end of each
// sentence.
Tensor recurrent(const RecurrentWeights& cell, const Tensor& x, const Tensor& start,
                 const TimeMajor& rows, Direction direction);
// recurrent() computed from plain operations, one time step after another: the reference for tests.
Tensor recurrent_reference(const RecurrentWeights& cell, const Tensor& x, const Tensor& start,
                           const TimeMajor& rows, Direction direction);

// One time step: the new states [x.rows(), state_width] from the first x.rows() rows of `before`.
Tensor recurrent_step(const RecurrentWeights& cell, const Tensor& x, const Tensor& before);

}  // namespace fovea
