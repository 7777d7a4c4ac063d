#pragma once

#include "tensor/device.h"
#include "tensor/matrix.h"

namespace fovea::kernel {

// The kernels' view of the arguments of guide_loss().
template <class T>
struct AlignmentLossInput {
  Matrix<const T> q, k;
  const int32_t *query_offsets, *key_offsets;
  int64_t sentences;
  const int32_t *link_offsets, *links;  // see AlignmentTargets
};

// losses[n] = −1/|G_n| Σ_{j∈G_n} log a_nj, 0 without links, and log_sums[n] = log Σ_j exp(s_nj),
// s = q kᵀ / √d_k.
template <class T>
void guide_loss(Cpu, const AlignmentLossInput<T>& in, T* losses, T* log_sums);
template <class T>
void guide_loss(Cuda, const AlignmentLossInput<T>& in, T* losses, T* log_sums);

// ds_nj = scale[0] (a_nj − [j ∈ G_n] / |G_n|) for queries with links, 0 for other queries. If
// `scale` is null, the factor is 1. dq = ds k / √d_k, dk = dsᵀ q / √d_k.
template <class T>
void guide_loss_grad_q(Cpu, const AlignmentLossInput<T>& in, const T* scale, const T* log_sums,
                       Matrix<T> dq, OutputMode fold);
template <class T>
void guide_loss_grad_q(Cuda, const AlignmentLossInput<T>& in, const T* scale, const T* log_sums,
                       Matrix<T> dq, OutputMode fold);
template <class T>
void guide_loss_grad_k(Cpu, const AlignmentLossInput<T>& in, const T* scale, const T* log_sums,
                       Matrix<T> dk, OutputMode fold);
template <class T>
void guide_loss_grad_k(Cuda, const AlignmentLossInput<T>& in, const T* scale, const T* log_sums,
                       Matrix<T> dk, OutputMode fold);

}  // namespace fovea::kernel
