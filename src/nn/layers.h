#pragma once

#include "nn/params.h"
#include "ops/matmul.h"
#include "ops/norm.h"

namespace fovea {

// x Wᵀ + b, as an activation. The weights are declared as they are multiplied: [out, in].
struct Affine {
  Tensor W, b;

  Affine(Scope scope, int64_t in, int64_t out)
      : W(scope.declare("W", {out, in}, Init::glorot(in, out))),
        b(scope.declare("b", {out}, Init::constant(0))) {}
  Tensor operator()(const Tensor& x) const { return linear(x, W, b, Give::activation); }
};

// g (x − μ) / σ + b, over the last axis.
struct LayerNorm {
  Tensor g, b;

  LayerNorm(Scope scope, int64_t size)
      : g(scope.declare("g", {size}, Init::constant(1))),
        b(scope.declare("b", {size}, Init::constant(0))) {}
  Tensor operator()(const Tensor& x) const { return layer_norm(x, g, b); }
  // LayerNorm(x + dropout(f))
  Tensor operator()(const Tensor& x, const Tensor& f, double rate) const {
    return residual_norm(x, f, dropout_key(rate), g, b);
  }
};

}  // namespace fovea
