#pragma once

#include "gemm/gemm.h"

// Products of a recurrent network. Every step multiplies a few rows by the same weights.
namespace fovea {

// x Wᵀ + b. The values are those of linear().
Tensor step_linear(const Tensor& x, const Tensor& W, const Tensor& b = {});
// Row i of the result is x_{first + i} + a_i Wᵀ, for i < a.rows(). x holds the inputs of all steps,
// computed as one product; a step adds its recurrent part.
Tensor step_linear_onto(const Tensor& x, int64_t first, const Tensor& a, const Tensor& W);

}  // namespace fovea
