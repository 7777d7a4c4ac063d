#pragma once

#include "ops/dropout.h"
#include "tensor/tensor.h"

namespace fovea {

inline constexpr double kNormEpsilon = 1e-5;

// Norms over the last axis:
//   layer  g (x − μ) / √(σ² + ε) + b with the biased variance σ²  (Ba et al. 2016)
//   rms    g x / √(mean(x²) + ε)                                  (Zhang and Sennrich 2019)
enum class NormType { layer, rms };

Tensor layer_norm(const Tensor& x, const Tensor& g, const Tensor& b, double epsilon = kNormEpsilon);
Tensor rms_norm(const Tensor& x, const Tensor& g, double epsilon = kNormEpsilon);

// LayerNorm(x + dropout(f)) or, if b is absent, RMSNorm(x + dropout(f)), computed in one pass: the
// end of a post-norm sub-layer.
Tensor residual_norm(const Tensor& x, const Tensor& f, const Dropout& dropout, const Tensor& g,
                     const Tensor& b, double epsilon = kNormEpsilon);
Tensor residual_norm_reference(const Tensor& x, const Tensor& f, const Dropout& dropout,
                               const Tensor& g, const Tensor& b, double epsilon = kNormEpsilon);

}  // namespace fovea
