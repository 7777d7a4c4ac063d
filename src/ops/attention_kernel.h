#pragma once

#include "ops/attention.h"

namespace fovea::kernel {

// A range of columns of a row-major matrix: entry (i, j) is data[i · stride + j].
template <class T>
struct StridedRows {
  T* data = nullptr;
  int64_t stride = 0;
};

// HeadsOptions::distance_scores: entry (reach + j − i) · heads + h for head h, query i and key j.
template <class T>
struct DistanceScores {
  const T* data = nullptr;  // [2 reach + 1, heads], or absent
  int64_t reach = 0;

  static DistanceScores of(const Tensor& scores) {
    if (!scores) return {};
    return {scores.data<T>(), (scores.rows() - 1) / 2};
  }
};

// The kernels' view of the arguments of attention (ops/attention.h).
template <class T>
struct AttentionInput {
  StridedRows<const T> q, k, v;
  const int32_t *query_offsets, *key_offsets;
  int64_t sentences, heads, size;  // size = d_k
  AttentionMask mask;
  Dropout dropout;
  int64_t longest_query, longest_key;  // words of the longest sentence; they determine a GPU's grid
  DistanceScores<SumType<T>> distances = {};
};

// y_i = Σ_j a_ij v_j, a = softmax(q kᵀ / √d_k + distance scores). `log_sums` [N, heads] receives
// the logarithms of the softmax's sums for the gradient; `weights` receives the matrices a. Either
// may be absent.
template <class T>
void attention(Cpu, const AttentionInput<T>& in, StridedRows<T> y, T* log_sums, T* weights);
template <class T>
void attention(Cuda, const AttentionInput<T>& in, StridedRows<T> y, T* log_sums, T* weights);
// The kernel above with products in bf16. REQUIRES: `weights` is absent.
void attention(Cuda, const AttentionInput<bf16>& in, StridedRows<bf16> y, float* log_sums,
               float* weights);

// The results of attention_grad(). fold_q says whether to set or add to dq, fold_kv the same for dk
// and dv.
template <class T>
struct AttentionGrad {
  StridedRows<T> dq, dk, dv;
  OutputMode fold_q = OutputMode::set, fold_kv = OutputMode::set;
  SumType<T>* distances = nullptr;  // the gradient of the distance scores, if they exist
  OutputMode fold_distances = OutputMode::set;
};

template <class T>
void attention_grad(Cpu, const AttentionInput<T>& in, StridedRows<const T> y,
                    StridedRows<const T> dy, const T* log_sums, const AttentionGrad<T>& out);
template <class T>
void attention_grad(Cuda, const AttentionInput<T>& in, StridedRows<const T> y,
                    StridedRows<const T> dy, const T* log_sums, const AttentionGrad<T>& out);
void attention_grad(Cuda, const AttentionInput<bf16>& in, StridedRows<const bf16> y,
                    StridedRows<const bf16> dy, const float* log_sums,
                    const AttentionGrad<bf16>& out);

// Attention to cached rows on the CPU, see CachedRows. The version for a GPU is in
// kv_cache_kernel.h.
template <class T>
void attend_remembered(Cpu, Matrix<const T> q, Matrix<const T> kv, Matrix<const int32_t> index,
                       const int32_t* lengths, int64_t heads, DistanceScores<T> distances,
                       Matrix<T> y);

}  // namespace fovea::kernel
