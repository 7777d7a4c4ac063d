#pragma once

#include "nn/params.h"
#include "ops/elementwise.h"
#include "ops/matmul.h"
#include "ops/running_average.h"

namespace fovea {

// The SSRU, a recurrent unit without recurrent products, in place of a decoder's self-attention.
// Kim et al.: From Research to Production and Back: Ludicrously Fast Neural Machine Translation,
// WNGT 2019, section 3.1.
//
//   f_t = σ(W_f x_t + b_f)
//   c_t = f_t ⊙ c_{t−1} + (1 − f_t) ⊙ W x_t,  c_0 = 0
//   y_t = max(0, c_t)
struct SimpleRecurrentUnit {
  Tensor W, W_f, b_f;

  SimpleRecurrentUnit(ParameterScope scope, int64_t size)
      : W(scope.declare("W", {size, size}, ParameterInit::glorot(size, size))),
        W_f(scope.declare("W_f", {size, size}, ParameterInit::glorot(size, size))),
        b_f(scope.declare("b_f", {size}, ParameterInit::constant(0))) {}
  Tensor forget(const Tensor& x) const { return sigmoid(linear(x, W_f, b_f)); }  // f_t
  Tensor operator()(const Tensor& x, const SentenceOffsets& sentences) const {
    return relu(running_average(forget(x), linear(x, W), sentences));
  }
};

}  // namespace fovea
