#pragma once

#include "ops/dropout.h"
#include "tensor/tensor.h"

namespace fovea {

enum class Function { tanh, sigmoid, relu, gelu, gelu_tanh, silu, exp };

// Returns dropout(f(x)), computed in one pass.
Tensor apply(Function f, const Tensor& x, const Dropout& dropout = {});
// Returns dropout(f(x) z), a gated activation, computed in one pass. REQUIRES: x and z have the
// same shape and are different tensors.
Tensor gated(Function f, const Tensor& x, const Tensor& z, const Dropout& dropout = {});
inline Tensor tanh(const Tensor& x) { return apply(Function::tanh, x); }
inline Tensor sigmoid(const Tensor& x) { return apply(Function::sigmoid, x); }
inline Tensor relu(const Tensor& x) { return apply(Function::relu, x); }
inline Tensor exp(const Tensor& x) { return apply(Function::exp, x); }

// Shapes are aligned at the last axis. If an axis of one operand has size 1, it is repeated to
// match the other operand.
Tensor operator+(const Tensor& a, const Tensor& b);
Tensor operator*(const Tensor& a, const Tensor& b);
Tensor operator*(const Tensor& a, double scale);
Tensor sum(const Tensor& a);

// x + dropout(f): the residual connection of a sub-layer.
Tensor residual(const Tensor& x, const Tensor& f, const Dropout& dropout = {});
Tensor dropped(const Tensor& x, const Dropout& dropout);

}  // namespace fovea
