#pragma once

#include <span>
#include <vector>

#include "tensor/tensor.h"

namespace fovea {

// Sentences of a batch in the order of recurrent networks, without padding: all first words, then
// all second words, and so on, sentences by falling length. The rows alive at time t are then the
// first alive(t) sentences, and they stand together: rows first[t] … first[t + 1]. No sentence is
// empty.
struct TimeMajor {
  std::vector<int64_t> first;  // times + 1
  std::vector<int32_t> order;  // order[i]: which sentence of the batch stands in place i
  Tensor from;  // i32 [tokens]: row r here is row from[r] of the sentences one after another
  Tensor to;    // its inverse: row p of the sentences one after another is row to[p] here
  Tensor ends;  // i32 [sentences]: the row of the last word of the sentence in place i
  std::vector<int32_t> words;  // what `from` holds, on the host

  // Where sentences are filled up with padding: the rows with the own words of each sentence last
  // to first, before its padding. It is its own inverse; absent: there is no padding.
  Tensor turned;

  static TimeMajor of(std::span<const int32_t> offsets, Device device = Cpu{});
  // Of each sentence the first lengths[b] words are its own, the others padding: `ends` are those
  // of its own words.
  static TimeMajor filled(std::span<const int32_t> offsets, std::span<const int32_t> lengths,
                          Device device);
  int64_t times() const { return static_cast<int64_t>(first.size()) - 1; }
  int64_t alive(int64_t t) const { return first[t + 1] - first[t]; }
  int64_t sentences() const { return static_cast<int64_t>(order.size()); }
  int64_t tokens() const { return first.back(); }
};

// Row i: row index[i] of x. index is i32; rows may be repeated or left out.
Tensor rows_at(const Tensor& x, const Tensor& index);

// The same where `index` is its own inverse, as TimeMajor::turned is: the way back is as short.
Tensor turned_rows(const Tensor& x, const Tensor& index);

enum class Cell { rnn, lstm, gru, gru_after };

// Stacked rows of W, U and b of a cell: LSTM i, f, g, o; GRU r, z, n.
inline int64_t gates(Cell cell) { return cell == Cell::rnn ? 1 : cell == Cell::lstm ? 4 : 3; }
// A state is one row: h, or h and c side by side for an LSTM.
inline int64_t state_width(Cell cell, int64_t H) { return cell == Cell::lstm ? 2 * H : H; }

// The recurrent half of a cell. `gru` (Cho 2014) resets before the product U_n (r ∘ h), `gru_after`
// (cuDNN, PyTorch) after it, and alone has a bias b_n [H] inside the reset.
struct Recurrent {
  Cell cell;
  Tensor U;    // [gates · H, H]
  Tensor b_n;  // [H], gru_after only
};

enum class Direction { forward, backward };

// The states of every row, [tokens, state_width]. `x` is W x + b of every row, [tokens, gates · H],
// computed as one product beforehand. `start` [sentences, state_width] is the state before the
// first word in this direction (zeros where absent): backward starts at each sentence's own end.
Tensor recurrent(const Recurrent& cell, const Tensor& x, const Tensor& start, const TimeMajor& rows,
                 Direction direction);
// The same by plain ops, one time after another.
Tensor recurrent_reference(const Recurrent& cell, const Tensor& x, const Tensor& start,
                           const TimeMajor& rows, Direction direction);

// One step: the states after `before`, of which the first x.rows() rows go on. [x.rows(), width]
Tensor recurrent_step(const Recurrent& cell, const Tensor& x, const Tensor& before);

}  // namespace fovea
