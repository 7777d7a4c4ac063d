#include <algorithm>
#include <limits>

#include "ops/softmax_kernel.h"
#include "ops/vector_math.h"

namespace fovea::kernel {

template <class T>
void softmax(Cpu, Matrix<const T> x, Matrix<const T> keep, Matrix<T> y) {
  const int64_t share = keep.data ? x.rows / keep.rows : 1;
#pragma omp parallel for schedule(static) if (x.size() > kWorthThreads)
  for (int64_t i = 0; i < x.rows; ++i) {
    const T* in = x.row(i);
    const T* kept = keep.data ? keep.row(i / share) : nullptr;
    T* out = y.row(i);

    T top = -std::numeric_limits<T>::infinity();
    for (int64_t j = 0; j < x.cols; ++j)
      if (!kept || kept[j] != 0) top = std::max(top, in[j]);

    double sum = 0;  // subtracting the largest score keeps every exp() in (0, 1]
    for (int64_t j = 0; j < x.cols; ++j) {
      out[j] = (!kept || kept[j] != 0) ? math::exp(in[j] - top) : T{0};
      sum += static_cast<double>(out[j]);
    }

    const T scale = sum > 0 ? static_cast<T>(1 / sum) : T{0};  // a fully masked row becomes 0
    for (int64_t j = 0; j < x.cols; ++j) out[j] *= scale;
  }
}

template <class T>
void softmax_grad(Cpu, Matrix<const T> y, Matrix<const T> dy, Matrix<T> dx, OutputMode fold) {
#pragma omp parallel for schedule(static) if (y.size() > kWorthThreads)
  for (int64_t i = 0; i < y.rows; ++i) {
    T dot = 0;
#pragma omp simd reduction(+ : dot)
    for (int64_t j = 0; j < y.cols; ++j) dot += y.row(i)[j] * dy.row(i)[j];
    for (int64_t j = 0; j < y.cols; ++j)
      fold_into(dx.row(i)[j], fold, y.row(i)[j] * (dy.row(i)[j] - dot));
  }
}

template void softmax(Cpu, Matrix<const float>, Matrix<const float>, Matrix<float>);
template void softmax(Cpu, Matrix<const double>, Matrix<const double>, Matrix<double>);
template void softmax_grad(Cpu, Matrix<const float>, Matrix<const float>, Matrix<float>,
                           OutputMode);
template void softmax_grad(Cpu, Matrix<const double>, Matrix<const double>, Matrix<double>,
                           OutputMode);

}  // namespace fovea::kernel
