#pragma once

#include "ops/recurrent.h"
#include "tensor/device.h"
#include "tensor/matrix.h"
#include "tensor/tensor.h"

namespace fovea::kernel {

// The number of columns of RecurrentStep::kept, which a step stores for its gradient: i, f, g, o
// for an LSTM; r, z, n for gru; r, z, n and U_n h + b_n for gru_after. An RNN needs only its
// states.
inline int64_t kept_columns(Cell cell, int64_t H) {
  return cell == Cell::rnn ? 0 : cell == Cell::gru ? 3 * H : 4 * H;
}

// One time step for the n sentences that have a word: the first n rows of each matrix.
template <class T>
struct RecurrentStep {
  Matrix<const T> x;          // [n, gates · H]
  Matrix<const T> u;          // the recurrent product: U h
  const T* b_n;               // gru_after only
  Matrix<T> h, c;             // the states h and, for an LSTM, c; the step updates them
  Matrix<T> y;                // [n, state_width]: receives a copy of the new states
  Matrix<T> kept;             // [n, kept_columns]: receives values for the gradient
  Matrix<bf16> rounded = {};  // GPU: receives the new h in bf16; may be absent
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
// A step of gru has two kernels. gru_reset() reads u = (U_r h, U_z h), and computes r, z and
// `reset` = r ∘ h. gru_step() reads u = U_n (r ∘ h) and computes the new state.
template <class T>
void gru_reset(Cpu, const RecurrentStep<T>& s, Matrix<T> reset);
template <class T>
void gru_reset(Cuda, const RecurrentStep<T>& s, Matrix<T> reset);
template <class T>
void gru_step(Cpu, const RecurrentStep<T>& s);
template <class T>
void gru_step(Cuda, const RecurrentStep<T>& s);

// The states before a step: those of the neighbouring time step. If a sentence begins at this step,
// its start state.
template <class T>
struct PreviousStates {
  Matrix<const T> states, start;
  constexpr const T* row(int64_t i) const { return i < states.rows ? states.row(i) : start.row(i); }
};

// The backward pass of one time step. On entry, dh and dc hold the gradients of the new states from
// later steps. On return, they hold the gradients of the previous states, without the term that
// flows through the recurrent product. U is the type of the operands of products; on a GPU it may
// be bf16.
template <class T, class U = T>
struct RecurrentStepGrad {
  Matrix<const T> y, kept, dy;
  PreviousStates<T> before;
  Matrix<T> dh, dc;
  Matrix<T> dx;    // [n, gates · H]
  Matrix<U> du;    // gradient of U h; used if it differs from dx in value or type
  Matrix<U> from;  // receives [n, H]: the previous h, which U multiplied
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
// The backward pass of gru has two kernels. gru_step_grad() sets du = d(U_n (r ∘ h)) and from = r ∘
// h. gru_reset_grad() reads `dreset`, the gradient of r ∘ h through U_n. It sets du = d(U_r h, U_z
// h) and from = h.
template <class T>
void gru_step_grad(Cpu, const RecurrentStepGrad<T>& s);
template <class T, class U>
void gru_step_grad(Cuda, const RecurrentStepGrad<T, U>& s);
template <class T>
void gru_reset_grad(Cpu, const RecurrentStepGrad<T>& s, Matrix<const T> dreset);
template <class T, class U>
void gru_reset_grad(Cuda, const RecurrentStepGrad<T, U>& s, Matrix<const T> dreset);

// Adds the rows of `more` to the first rows of `to`.
template <class T>
void add_rows(Cpu, Matrix<const T> more, Matrix<T> to);
template <class T>
void add_rows(Cuda, Matrix<const T> more, Matrix<T> to);

}  // namespace fovea::kernel
