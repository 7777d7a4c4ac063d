#pragma once

#include "tensor/device.h"
#include "tensor/matrix.h"

namespace fovea::kernel {

// The words of sentence b are the rows offsets[b] … offsets[b + 1] of all matrices.
template <class T>
struct AverageInput {
  const int32_t* offsets;
  int64_t sentences;
  Matrix<const T> f, x;
};

// c_t = f_t c_{t−1} + (1 − f_t) x_t
template <class T>
void running_average(Cpu, const AverageInput<T>& in, Matrix<T> c);
template <class T>
void running_average(Cuda, const AverageInput<T>& in, Matrix<T> c);

// With d_t = dy_t + f_{t+1} d_{t+1}: df_t = d_t (c_{t−1} − x_t) and dx_t = d_t (1 − f_t). Either
// may be absent.
template <class T>
struct AverageGrad {
  Matrix<const T> c, dy;
  Matrix<T> df, dx;
  OutputMode fold_f, fold_x;
};
template <class T>
void running_average_grad(Cpu, const AverageInput<T>& in, const AverageGrad<T>& grad);
template <class T>
void running_average_grad(Cuda, const AverageInput<T>& in, const AverageGrad<T>& grad);

// For the CPU only. The GPU's version is in kv_cache_kernel.h.
template <class T>
void average_step(Cpu, Matrix<const T> f, Matrix<const T> x, Matrix<const T> states,
                  const int32_t* previous, Matrix<T> y);

}  // namespace fovea::kernel
