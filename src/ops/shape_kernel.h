#pragma once

#include "tensor/device.h"
#include "tensor/matrix.h"

namespace fovea::kernel {

// The copy of a block: to[i · to_stride + j] = from[i · from_stride + j] for i < rows and j < cols.
// With OutputMode::add the block is added to `to`.
template <class T>
struct BlockCopy {
  const T* from;
  int64_t from_stride;
  T* to;
  int64_t to_stride, rows, cols;
  OutputMode fold = OutputMode::set;
};

template <class T>
void copy(Cpu, const BlockCopy<T>& what);
template <class T>
void copy(Cuda, const BlockCopy<T>& what);

// y = xᵀ; y does not overlap x.
template <class T>
void transpose(Cpu, Matrix<const T> x, Matrix<T> y, OutputMode fold);
template <class T>
void transpose(Cuda, Matrix<const T> x, Matrix<T> y, OutputMode fold);

}  // namespace fovea::kernel
