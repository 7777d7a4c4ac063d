#pragma once

#include "ops/dropout.h"
#include "tensor/tensor.h"

namespace fovea {

inline constexpr double kNormEpsilon = 1e-5;

// g (x − μ) / √(σ² + ε) + b over the last axis; σ² is the biased variance.
Tensor layer_norm(const Tensor& x, const Tensor& g, const Tensor& b, double epsilon = kNormEpsilon);

// LayerNorm(x + dropout(f)): the end of a post-norm sub-layer, in one pass.
Tensor residual_norm(const Tensor& x, const Tensor& f, const Dropout& dropout, const Tensor& g,
                     const Tensor& b, double epsilon = kNormEpsilon);
Tensor residual_norm_reference(const Tensor& x, const Tensor& f, const Dropout& dropout,
                               const Tensor& g, const Tensor& b, double epsilon = kNormEpsilon);

}  // namespace fovea
