#pragma once

#include "ops/product.h"

// Products with weights that a recurrent network multiplies at every step: few rows at a time.
namespace fovea {

// x Wᵀ + b, as linear() gives it.
Tensor step_linear(const Tensor& x, const Tensor& W, const Tensor& b = {});
// x_i + a_i Wᵀ for the a.rows() rows of x from `first` on: what a step adds to its inputs, of which
// those of all steps were computed at once.
Tensor step_linear_onto(const Tensor& x, int64_t first, const Tensor& a, const Tensor& W);

}  // namespace fovea
