#include <algorithm>
#include <vector>

#include "ops/running_average_kernel.h"

namespace fovea::kernel {

template <class T>
void running_average(Cpu, const AverageInput<T>& in, Matrix<T> c) {
#pragma omp parallel for schedule(static) if (c.size() > kWorthThreads)
  for (int64_t b = 0; b < in.sentences; ++b)
    for (int64_t t = in.offsets[b]; t < in.offsets[b + 1]; ++t) {
      const T *f = in.f.row(t), *x = in.x.row(t);
      T* const to = c.row(t);
      if (t == in.offsets[b]) {
        for (int64_t j = 0; j < c.cols; ++j) to[j] = (1 - f[j]) * x[j];
        continue;
      }
      const T* const before = c.row(t - 1);
      for (int64_t j = 0; j < c.cols; ++j) to[j] = f[j] * before[j] + (1 - f[j]) * x[j];
    }
}

template <class T>
void running_average_grad(Cpu, const AverageInput<T>& in, const AverageGrad<T>& grad) {
  const int64_t cols = grad.dy.cols;
#pragma omp parallel if (grad.dy.size() > kWorthThreads)
  {
    std::vector<T> later(static_cast<size_t>(cols)), zeros(static_cast<size_t>(cols));
#pragma omp for schedule(static)
    for (int64_t b = 0; b < in.sentences; ++b) {
      std::fill(later.begin(), later.end(), T{0});  // f_{t+1} d_{t+1}
      for (int64_t t = in.offsets[b + 1] - 1; t >= in.offsets[b]; --t) {
        const T *f = in.f.row(t), *x = in.x.row(t), *dy = grad.dy.row(t);
        const T* const before = t > in.offsets[b] ? grad.c.row(t - 1) : zeros.data();
        T* const d = later.data();
        for (int64_t j = 0; j < cols; ++j) d[j] += dy[j];
        if (grad.df.data)
          fold_row(grad.df.row(t), cols, grad.fold_f,
                   [=](int64_t j) { return d[j] * (before[j] - x[j]); });
        if (grad.dx.data)
          fold_row(grad.dx.row(t), cols, grad.fold_x, [=](int64_t j) { return d[j] * (1 - f[j]); });
        for (int64_t j = 0; j < cols; ++j) d[j] *= f[j];
      }
    }
  }
}

template <class T>
void average_step(Cpu, Matrix<const T> f, Matrix<const T> x, Matrix<const T> states,
                  const int32_t* previous, Matrix<T> y) {
#pragma omp parallel for schedule(static) if (y.size() > kWorthThreads)
  for (int64_t r = 0; r < y.rows; ++r) {
    const T *keep = f.row(r), *now = x.row(r);
    const T* const before = previous[r] < 0 ? nullptr : states.row(previous[r]);
    T* const to = y.row(r);
    for (int64_t j = 0; j < y.cols; ++j) to[j] = (1 - keep[j]) * now[j];
    for (int64_t j = 0; before && j < y.cols; ++j) to[j] += keep[j] * before[j];
  }
}

#define FOVEA_INSTANTIATE(T)                                                              \
  template void running_average(Cpu, const AverageInput<T>&, Matrix<T>);                  \
  template void running_average_grad(Cpu, const AverageInput<T>&, const AverageGrad<T>&); \
  template void average_step(Cpu, Matrix<const T>, Matrix<const T>, Matrix<const T>,      \
                             const int32_t*, Matrix<T>);
FOVEA_INSTANTIATE(float)
FOVEA_INSTANTIATE(double)
#undef FOVEA_INSTANTIATE

}  // namespace fovea::kernel
