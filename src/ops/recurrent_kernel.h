#pragma once

#include "ops/recurrent.h"
#include "tensor/device.h"
#include "tensor/matrix.h"
#include "tensor/tensor.h"

namespace fovea::kernel {

// What a step keeps for its gradient: LSTM i, f, g, o; gru r, z, n; gru_after r, z, n and
// U_n h + b_n. An RNN needs nothing but its states.
inline int64_t kept_columns(Cell cell, int64_t H) {
  return cell == Cell::rnn ? 0 : cell == Cell::gru ? 3 * H : 4 * H;
}

// One time of all n sentences that are alive: the first n rows of everything.
template <class T>
struct RecurrentStep {
  Matrix<const T> x;          // [n, gates · H]
  Matrix<const T> u;          // the recurrent product: U h
  const T* b_n;               // gru_after only
  Matrix<T> h, c;             // the states before this step, and then after it; c for an LSTM only
  Matrix<T> y;                // [n, width]: the states after it once more
  Matrix<T> kept;             // [n, kept_columns]
  Matrix<bf16> rounded = {};  // on a GPU: h after it once more, or absent
};

template <class T>
void rnn_step(Cpu, const RecurrentStep<T>& s);
template <class T>
void rnn_step(Cuda, const RecurrentStep<T>& s);
template <class T>
void lstm_step(Cpu, const RecurrentStep<T>& s);
template <class T>
void lstm_step(Cuda, const RecurrentStep<T>& s);
template <class T>
void gru_after_step(Cpu, const RecurrentStep<T>& s);
template <class T>
void gru_after_step(Cuda, const RecurrentStep<T>& s);
// gru in two halves: r and z from u = (U_r h, U_z h), and `reset` = r ∘ h; then the rest from
// u = U_n (r ∘ h).
template <class T>
void gru_reset(Cpu, const RecurrentStep<T>& s, Matrix<T> reset);
template <class T>
void gru_reset(Cuda, const RecurrentStep<T>& s, Matrix<T> reset);
template <class T>
void gru_step(Cpu, const RecurrentStep<T>& s);
template <class T>
void gru_step(Cuda, const RecurrentStep<T>& s);

// The states before a step: those of its neighbour in time, and of sentences that begin here those
// they start from.
template <class T>
struct Before {
  Matrix<const T> states, start;
  constexpr const T* row(int64_t i) const { return i < states.rows ? states.row(i) : start.row(i); }
};

// The way back through one time. dh and dc hold what flows into the states after it from later
// steps, and then what flows to the states before it on other ways than through U. A GPU may write
// what enters products in bf16 (U).
template <class T, class U = T>
struct RecurrentStepGrad {
  Matrix<const T> y, kept, dy;
  Before<T> before;
  Matrix<T> dh, dc;
  Matrix<T> dx;    // [n, gates · H]
  Matrix<U> du;    // gradient of U h, where it is another than dx, or of another type
  Matrix<U> from;  // [n, H]: h before, which U multiplied
};

template <class T>
void rnn_step_grad(Cpu, const RecurrentStepGrad<T>& s);
template <class T, class U>
void rnn_step_grad(Cuda, const RecurrentStepGrad<T, U>& s);
template <class T>
void lstm_step_grad(Cpu, const RecurrentStepGrad<T>& s);
template <class T, class U>
void lstm_step_grad(Cuda, const RecurrentStepGrad<T, U>& s);
template <class T>
void gru_after_step_grad(Cpu, const RecurrentStepGrad<T>& s);
template <class T, class U>
void gru_after_step_grad(Cuda, const RecurrentStepGrad<T, U>& s);
// gru in two halves: du = d(U_n (r ∘ h)) and from = r ∘ h; then, with that gradient brought back
// through U_n as `dreset`, du = d(U_r h, U_z h) and from = h.
template <class T>
void gru_step_grad(Cpu, const RecurrentStepGrad<T>& s);
template <class T, class U>
void gru_step_grad(Cuda, const RecurrentStepGrad<T, U>& s);
template <class T>
void gru_reset_grad(Cpu, const RecurrentStepGrad<T>& s, Matrix<const T> dreset);
template <class T, class U>
void gru_reset_grad(Cuda, const RecurrentStepGrad<T, U>& s, Matrix<const T> dreset);

// The rows of `more` onto the first rows of `to`.
template <class T>
void add_rows(Cpu, Matrix<const T> more, Matrix<T> to);
template <class T>
void add_rows(Cuda, Matrix<const T> more, Matrix<T> to);

}  // namespace fovea::kernel
