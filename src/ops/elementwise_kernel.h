#pragma once

#include <array>

#include "ops/elementwise.h"

namespace fovea::kernel {

// y = dropout(f(x))
template <class T>
void apply(Cpu, Function f, Matrix<const T> x, const Dropout& dropout, Matrix<T> y);
template <class T>
void apply(Cuda, Function f, Matrix<const T> x, const Dropout& dropout, Matrix<T> y);
// dx = dropout(dy) f'(x)
template <class T>
void apply_grad(Cpu, Function f, Matrix<const T> x, Matrix<const T> dy, const Dropout& dropout,
                Matrix<T> dx, OutputMode fold);
template <class T>
void apply_grad(Cuda, Function f, Matrix<const T> x, Matrix<const T> dy, const Dropout& dropout,
                Matrix<T> dx, OutputMode fold);
// y = dropout(f(x) z)
template <class T>
void gate(Cpu, Function f, Matrix<const T> x, Matrix<const T> z, const Dropout& dropout,
          Matrix<T> y, OutputMode fold);
template <class T>
void gate(Cuda, Function f, Matrix<const T> x, Matrix<const T> z, const Dropout& dropout,
          Matrix<T> y, OutputMode fold);
// dx = dropout(dy) f'(x) z
template <class T>
struct GateGrad {
  Matrix<const T> x, z, dy;
  Matrix<T> dx;
  OutputMode fold;
};
template <class T>
void gate_grad(Cpu, Function f, const GateGrad<T>& in, const Dropout& dropout);
template <class T>
void gate_grad(Cuda, Function f, const GateGrad<T>& in, const Dropout& dropout);
// The gradient of y = dropout(max(0, x)) from y: dx = dropout(dy) if y ≠ 0, otherwise 0.
template <class T>
void relu_grad(Cpu, Matrix<const T> y, Matrix<const T> dy, const Dropout& dropout, Matrix<T> dx,
               OutputMode fold);
template <class T>
void relu_grad(Cuda, Matrix<const T> y, Matrix<const T> dy, const Dropout& dropout, Matrix<T> dx,
               OutputMode fold);

// y = x + dropout(f)
template <class T>
void residual(Cpu, Matrix<const SumType<T>> x, Matrix<const T> f, const Dropout& dropout,
              Matrix<SumType<T>> y);
template <class T>
void residual(Cuda, Matrix<const SumType<T>> x, Matrix<const T> f, const Dropout& dropout,
              Matrix<SumType<T>> y);
// y = dropout(x)
template <class T>
void drop(Cpu, Matrix<const SumType<T>> x, const Dropout& dropout, Matrix<T> y, OutputMode fold);
template <class T>
void drop(Cuda, Matrix<const SumType<T>> x, const Dropout& dropout, Matrix<T> y, OutputMode fold);

// The shape of a broadcast over at most four axes: the size of the result, and the strides of the
// operands a and b. If the stride of an operand is 0, the operand is repeated along that axis.
struct Broadcast {
  std::array<int64_t, 4> size, a, b;
};
enum class Binary { add, multiply };
template <class T>
void binary(Cpu, Binary what, const Broadcast& shape, const T* a, const T* b, T* y);
template <class T>
void binary(Cuda, Binary what, const Broadcast& shape, const T* a, const T* b, T* y);
// da += Σ dy over the axes along which a is repeated. For a product, each term is dy × b. Operand
// `a` of `shape` is the one whose gradient is computed.
template <class T>
void binary_grad(Cpu, Binary what, const Broadcast& shape, const T* dy, const T* b, T* da);
template <class T>
void binary_grad(Cuda, Binary what, const Broadcast& shape, const T* dy, const T* b, T* da);

// y = factor · x
template <class T>
void scale(Cpu, Matrix<const T> x, double factor, Matrix<T> y, OutputMode fold);
template <class T>
void scale(Cuda, Matrix<const T> x, double factor, Matrix<T> y, OutputMode fold);
// y = factor[0] · x; `factor` is in device memory.
template <class T>
void scale_by(Cpu, Matrix<const T> x, const T* factor, Matrix<T> y, OutputMode fold);
template <class T>
void scale_by(Cuda, Matrix<const T> x, const T* factor, Matrix<T> y, OutputMode fold);
// y[0] = Σ x
template <class T>
void sum(Cpu, Matrix<const T> x, T* y);
template <class T>
void sum(Cuda, Matrix<const T> x, T* y);
// dx = value[0] in every entry.
template <class T>
void add_constant(Cpu, const T* value, Matrix<T> dx, OutputMode fold);
template <class T>
void add_constant(Cuda, const T* value, Matrix<T> dx, OutputMode fold);

}  // namespace fovea::kernel
