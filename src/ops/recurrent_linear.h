#pragma once

#include "gemm/gemm.h"

// Products of a recurrent network: the same weights at every step, with few rows each.
namespace fovea {

// x Wᵀ + b, the same values as linear().
Tensor step_linear(const Tensor& x, const Tensor& W, const Tensor& b = {});
// x_i + a_i Wᵀ for the a.rows() rows of x that begin at `first`. x holds the inputs of all steps,
// computed as one product; a step adds its recurrent part.
Tensor step_linear_onto(const Tensor& x, int64_t first, const Tensor& a, const Tensor& W);

}  // namespace fovea
