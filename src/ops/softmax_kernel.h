#pragma once

#include "tensor/device.h"
#include "tensor/matrix.h"

namespace fovea::kernel {

// y = softmax(x), row by row, over the columns where `keep` is not zero; y = 0 elsewhere.
// One row of `keep` serves x.rows / keep.rows rows of x in a row; no data means keep all.
template <class T>
void softmax(Cpu, Matrix<const T> x, Matrix<const T> keep, Matrix<T> y);
template <class T>
void softmax(Cuda, Matrix<const T> x, Matrix<const T> keep, Matrix<T> y);

// dx = y (dy − ⟨y, dy⟩), row by row.
template <class T>
void softmax_grad(Cpu, Matrix<const T> y, Matrix<const T> dy, Matrix<T> dx, Fold fold);
template <class T>
void softmax_grad(Cuda, Matrix<const T> y, Matrix<const T> dy, Matrix<T> dx, Fold fold);

}  // namespace fovea::kernel
