#include "ops/shape_kernel.h"

namespace fovea::kernel {

template <class T>
void copy(Cpu, const Copy<T>& c) {
#pragma omp parallel for schedule(static) if (c.rows * c.cols > kWorthThreads)
  for (int64_t i = 0; i < c.rows; ++i) {
    const T* from = c.from + i * c.from_stride;
    fold_row(c.to + i * c.to_stride, c.cols, c.fold, [=](int64_t j) { return from[j]; });
  }
}

template void copy(Cpu, const Copy<float>&);
template void copy(Cpu, const Copy<double>&);

}  // namespace fovea::kernel
