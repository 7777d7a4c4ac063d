#pragma once

#include "tensor/device.h"
#include "tensor/matrix.h"

namespace fovea::kernel {

// y = softmax(x), row by row. It is over the columns whose `keep` is not 0; y is 0 elsewhere. Each
// row of `keep` applies to x.rows / keep.rows consecutive rows of x. If `keep` has no data, no
// column is masked.
template <class T>
void softmax(Cpu, Matrix<const T> x, Matrix<const T> keep, Matrix<T> y);
template <class T>
void softmax(Cuda, Matrix<const T> x, Matrix<const T> keep, Matrix<T> y);

// dx = y (dy − ⟨y, dy⟩), row by row.
template <class T>
void softmax_grad(Cpu, Matrix<const T> y, Matrix<const T> dy, Matrix<T> dx, OutputMode fold);
template <class T>
void softmax_grad(Cuda, Matrix<const T> y, Matrix<const T> dy, Matrix<T> dx, OutputMode fold);

}  // namespace fovea::kernel
