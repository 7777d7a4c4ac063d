#pragma once

#include "gemm/gemm.h"

// Products of a recurrent network, where every step multiplies a few rows by the same weights.
namespace fovea {

// x Wᵀ + b, with the same values as linear().
Tensor step_linear(const Tensor& x, const Tensor& W, const Tensor& b = {});
// Row i of the result is x_{first + i} + a_i Wᵀ, for i < a.rows(). x holds the inputs of all steps,
// computed as one product. A step adds its own recurrent product to its rows of x.
Tensor step_linear_onto(const Tensor& x, int64_t first, const Tensor& a, const Tensor& W);

}  // namespace fovea
