#include "ops/running_average_kernel.h"
#include "tensor/cuda.h"
#include "tensor/warp.cuh"

// A thread per sentence and column reads the words one after another. Neighbouring threads have
// neighbouring columns.
namespace fovea::kernel {
namespace {

constexpr int kThreads = 64;

template <class T>
__global__ void __launch_bounds__(kThreads) average_words(AverageInput<T> in, Matrix<T> c) {
  const int64_t j = int64_t{blockIdx.y} * kThreads + threadIdx.x;
  if (j >= c.cols) return;
  T state = 0;
#pragma unroll 4
  for (int64_t t = in.offsets[blockIdx.x]; t < in.offsets[blockIdx.x + 1]; ++t) {
    const T f = in.f.row(t)[j];
    state = f * state + (1 - f) * in.x.row(t)[j];
    c.row(t)[j] = state;
  }
}

template <class T>
__global__ void __launch_bounds__(kThreads)
    average_words_back(AverageInput<T> in, AverageGrad<T> grad) {
  const int64_t j = int64_t{blockIdx.y} * kThreads + threadIdx.x;
  if (j >= grad.dy.cols) return;
  const int64_t first = in.offsets[blockIdx.x];
  T later = 0;  // f_{t+1} d_{t+1}
#pragma unroll 4
  for (int64_t t = in.offsets[blockIdx.x + 1] - 1; t >= first; --t) {
    const T f = in.f.row(t)[j], x = in.x.row(t)[j], d = grad.dy.row(t)[j] + later;
    const T before = t > first ? grad.c.row(t - 1)[j] : 0;
    if (grad.df.data) fold_into(grad.df.row(t)[j], grad.fold_f, d * (before - x));
    if (grad.dx.data) fold_into(grad.dx.row(t)[j], grad.fold_x, d * (1 - f));
    later = f * d;
  }
}

dim3 blocks_of(int64_t sentences, int64_t cols) {
  return dim3(static_cast<unsigned>(sentences), blocks_for(cols, kThreads));
}

}  // namespace

template <class T>
void running_average(Cuda on, const AverageInput<T>& in, Matrix<T> c) {
  if (c.size() == 0) return;
  average_words<<<blocks_of(in.sentences, c.cols), kThreads, 0, stream(on)>>>(in, c);
  check_launch("running_average");
}

template <class T>
void running_average_grad(Cuda on, const AverageInput<T>& in, const AverageGrad<T>& grad) {
  if (grad.dy.size() == 0) return;
  average_words_back<<<blocks_of(in.sentences, grad.dy.cols), kThreads, 0, stream(on)>>>(in, grad);
  check_launch("running_average_grad");
}

template void running_average(Cuda, const AverageInput<float>&, Matrix<float>);
template void running_average_grad(Cuda, const AverageInput<float>&, const AverageGrad<float>&);

}  // namespace fovea::kernel
