#pragma once

#include "ops/attention.h"

namespace fovea::kernel {

// Columns of a row-major matrix: entry (i, j) is data[i · stride + j].
template <class T>
struct Columns {
  T* data = nullptr;
  int64_t stride = 0;
};

template <class T>
struct Heads {
  Columns<const T> q, k, v;
  const int32_t *query_offsets, *key_offsets;
  int64_t sentences, heads, size;  // size = d_k
  Look look;
  Dropout dropout;
  int64_t longest_query, longest_key;  // words of the longest sentence: what a GPU's grid needs
};

// y_i = Σ_j a_ij v_j, a = softmax(q kᵀ / √d_k). `log_sums` [N, heads] receives
// log Σ_j exp(q k/√d_k) for the gradient; `weights` the matrices themselves. Each may be absent.
template <class T>
void attention(Cpu, const Heads<T>& in, Columns<T> y, T* log_sums, T* weights);
template <class T>
void attention(Cuda, const Heads<T>& in, Columns<T> y, T* log_sums, T* weights);
// With products in bf16; REQUIRES: no weights are asked for.
void attention(Cuda, const Heads<bf16>& in, Columns<bf16> y, float* log_sums, float* weights);

template <class T>
struct HeadsGrad {
  Columns<T> dq, dk, dv;
  Fold fold_q = Fold::set, fold_kv = Fold::set;
};

template <class T>
void attention_grad(Cpu, const Heads<T>& in, Columns<const T> y, Columns<const T> dy,
                    const T* log_sums, const HeadsGrad<T>& out);
template <class T>
void attention_grad(Cuda, const Heads<T>& in, Columns<const T> y, Columns<const T> dy,
                    const T* log_sums, const HeadsGrad<T>& out);
void attention_grad(Cuda, const Heads<bf16>& in, Columns<const bf16> y, Columns<const bf16> dy,
                    const float* log_sums, const HeadsGrad<bf16>& out);

// A GPU decodes with decoder_memory_kernel.h.
template <class T>
void attend_remembered(Cpu, Matrix<const T> q, Matrix<const T> kv, Matrix<const int32_t> index,
                       const int32_t* lengths, int64_t heads, Matrix<T> y);

}  // namespace fovea::kernel
