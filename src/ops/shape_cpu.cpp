#include <algorithm>

#include "ops/shape_kernel.h"

namespace fovea::kernel {

template <class T>
void copy(Cpu, const BlockCopy<T>& c) {
#pragma omp parallel for schedule(static) if (c.rows * c.cols > kWorthThreads)
  for (int64_t i = 0; i < c.rows; ++i) {
    const T* from = c.from + i * c.from_stride;
    fold_row(c.to + i * c.to_stride, c.cols, c.fold, [=](int64_t j) { return from[j]; });
  }
}

template <class T>
void transpose(Cpu, Matrix<const T> x, Matrix<T> y, OutputMode fold) {
  constexpr int64_t kTile = 16;  // columns at a time, so that the cache lines of y stay cached
#pragma omp parallel for schedule(static) if (x.size() > kWorthThreads)
  for (int64_t first = 0; first < x.cols; first += kTile) {
    const int64_t end = std::min(first + kTile, x.cols);
    for (int64_t i = 0; i < x.rows; ++i)
      for (int64_t j = first; j < end; ++j) fold_into(y.row(j)[i], fold, x.row(i)[j]);
  }
}

template void copy(Cpu, const BlockCopy<float>&);
template void copy(Cpu, const BlockCopy<double>&);
template void transpose(Cpu, Matrix<const float>, Matrix<float>, OutputMode);
template void transpose(Cpu, Matrix<const double>, Matrix<double>, OutputMode);

}  // namespace fovea::kernel
