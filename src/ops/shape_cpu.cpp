#include "ops/shape_kernel.h"

namespace fovea::kernel {

template <class T>
void copy(Cpu, const Copy<T>& c) {
  for (int64_t i = 0; i < c.rows; ++i)
    for (int64_t j = 0; j < c.cols; ++j)
      fold_into(c.to[i * c.to_stride + j], c.fold, c.from[i * c.from_stride + j]);
}

template void copy(Cpu, const Copy<float>&);
template void copy(Cpu, const Copy<double>&);

}  // namespace fovea::kernel
