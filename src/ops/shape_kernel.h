#pragma once

#include "tensor/device.h"
#include "tensor/matrix.h"

namespace fovea::kernel {

// to[i · to_stride + j] = from[i · from_stride + j] for i < rows, j < cols, or added.
template <class T>
struct Copy {
  const T* from;
  int64_t from_stride;
  T* to;
  int64_t to_stride, rows, cols;
  Fold fold = Fold::set;
};

template <class T>
void copy(Cpu, const Copy<T>& what);
template <class T>
void copy(Cuda, const Copy<T>& what);

// y = xᵀ; y does not overlap x.
template <class T>
void transpose(Cpu, Matrix<const T> x, Matrix<T> y, Fold fold);
template <class T>
void transpose(Cuda, Matrix<const T> x, Matrix<T> y, Fold fold);

}  // namespace fovea::kernel
