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

}  // namespace fovea::kernel
