#pragma once

#include "nn/params.h"
#include "ops/matmul.h"
#include "ops/norm.h"

namespace fovea {

// An affine layer: x Wᵀ + b, computed with OutputType::activation. W is [out, in].
struct Affine {
  Tensor W, b;

  Affine(ParameterScope scope, int64_t in, int64_t out)
      : W(scope.declare("W", {out, in}, ParameterInit::glorot(in, out))),
        b(scope.declare("b", {out}, ParameterInit::constant(0))) {}
  Tensor operator()(const Tensor& x) const { return linear(x, W, b, OutputType::activation); }
};

struct NormSettings {
  NormType type = NormType::layer;
  double epsilon = kNormEpsilon;
};

// Layer normalization over the last axis: g (x − μ) / √(σ² + ε) + b. RMSNorm is this equation
// without μ and b, and with the mean of x² as σ².
struct LayerNorm {
  Tensor g, b;  // for RMSNorm, b is absent
  double epsilon;

  LayerNorm(ParameterScope scope, int64_t size, const NormSettings& settings = {})
      : g(scope.declare("g", {size}, ParameterInit::constant(1))), epsilon(settings.epsilon) {
    if (settings.type == NormType::layer)
      b = scope.declare("b", {size}, ParameterInit::constant(0));
  }
  Tensor operator()(const Tensor& x) const { return (*this)(x, {}, 0); }
  // LayerNorm(x + dropout(f))
  Tensor operator()(const Tensor& x, const Tensor& f, double rate) const {
    return residual_norm(x, f, dropout_key(rate), g, b, epsilon);
  }
};

}  // namespace fovea
