#pragma once

#include "tensor/device.h"
#include "tensor/matrix.h"

namespace fovea::kernel {

// The arguments of guide_loss() as the kernels read them.
template <class T>
struct AlignmentLossInput {
  Matrix<const T> q, k;
  const int32_t *query_offsets, *key_offsets;
  int64_t sentences;
  const int32_t *link_offsets, *links;  // offsets and keys of AlignmentTargets
};

// losses[n] = −1/|G_n| Σ_{j∈G_n} log a_nj, or 0 if query n has no links. log_sums[n] = log Σ_j
// exp(s_nj) with s = q kᵀ / √d_k.
template <class T>
void guide_loss(Cpu, const AlignmentLossInput<T>& in, T* losses, T* log_sums);
template <class T>
void guide_loss(Cuda, const AlignmentLossInput<T>& in, T* losses, T* log_sums);

// ds_nj = scale[0] (a_nj − [j ∈ G_n] / |G_n|) if query n has links, otherwise 0. If `scale` is
// null, scale[0] counts as 1. dq = ds k / √d_k, dk = dsᵀ q / √d_k.
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
