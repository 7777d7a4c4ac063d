#include <algorithm>

#include "ops/softmax_kernel.h"
#include "tensor/cuda.h"
#include "tensor/warp.cuh"

namespace fovea::kernel {
namespace {

constexpr int kWarps = 4, kWideThreads = 256;

// Attention rows are short (a sentence). So a warp processes one row, and each lane keeps up to
// kEach columns in registers. Masked columns are −∞ there, so that exp gives 0. `share` is the
// number of consecutive rows of x that use the same row of `keep`.
template <int kEach>
__global__ void __launch_bounds__(kWarps* kWarp)
    softmax_rows(Matrix<const float> x, Matrix<const float> keep, int64_t share, Matrix<float> y) {
  const int64_t i = int64_t{blockIdx.x} * kWarps + threadIdx.x / kWarp;
  if (i >= x.rows) return;
  const int cols = static_cast<int>(x.cols), lane = static_cast<int>(threadIdx.x) % kWarp;
  const float* in = x.row(i);
  const float* kept = keep.data ? keep.row(i / share) : nullptr;
  float z[kEach];
#pragma unroll
  for (int k = 0; k < kEach; ++k) {
    const int j = k * kWarp + lane;
    z[k] = j < cols ? in[j] : -INFINITY;
  }
  if (kept) {
#pragma unroll
    for (int k = 0; k < kEach; ++k) {
      const int j = k * kWarp + lane;
      if (j < cols && kept[j] == 0) z[k] = -INFINITY;
    }
  }
  float top = -INFINITY;
#pragma unroll
  for (int k = 0; k < kEach; ++k) top = fmaxf(top, z[k]);
  top = across_warp(top, WarpMax{});
  if (top == -INFINITY) top = 0;  // a fully masked row becomes 0

  float sum = 0;
#pragma unroll
  for (int k = 0; k < kEach; ++k) {
    z[k] = expf(z[k] - top);
    sum += z[k];
  }
  sum = across_warp(sum, WarpSum{});
  const float scale = sum > 0 ? 1 / sum : 0;
  float* out = y.row(i);
#pragma unroll
  for (int k = 0; k < kEach; ++k)
    if (k * kWarp + lane < cols) out[k * kWarp + lane] = z[k] * scale;
}

// If rows are too long for a warp, a block processes one row and reads it three times.
__global__ void __launch_bounds__(kWideThreads)
    softmax_wide(Matrix<const float> x, Matrix<const float> keep, int64_t share, Matrix<float> y) {
  const int64_t i = blockIdx.x;
  const float* in = x.row(i);
  const float* kept = keep.data ? keep.row(i / share) : nullptr;
  const auto at = [&](int64_t j) { return kept && kept[j] == 0 ? -INFINITY : in[j]; };

  float top = -INFINITY;
#pragma unroll 4
  for (int64_t j = threadIdx.x; j < x.cols; j += kWideThreads) top = fmaxf(top, at(j));
  top = across_block(top, WarpMax{}, -INFINITY);
  if (top == -INFINITY) top = 0;

  float sum = 0;
#pragma unroll 4
  for (int64_t j = threadIdx.x; j < x.cols; j += kWideThreads) sum += expf(at(j) - top);
  sum = across_block(sum, WarpSum{}, 0.0f);

  const float scale = sum > 0 ? 1 / sum : 0;
  float* out = y.row(i);
#pragma unroll 4
  for (int64_t j = threadIdx.x; j < x.cols; j += kWideThreads) out[j] = expf(at(j) - top) * scale;
}

struct SoftmaxGradInput {
  Matrix<const float> y, dy;
  Matrix<float> dx;
  OutputMode fold;
};

template <int kEach>
__global__ void __launch_bounds__(kWarps* kWarp) softmax_grad_rows(SoftmaxGradInput in) {
  const int64_t i = int64_t{blockIdx.x} * kWarps + threadIdx.x / kWarp;
  if (i >= in.y.rows) return;
  const int cols = static_cast<int>(in.y.cols), lane = static_cast<int>(threadIdx.x) % kWarp;
  const float *value = in.y.row(i), *d = in.dy.row(i);
  float y[kEach], dy[kEach], dot = 0;
#pragma unroll
  for (int k = 0; k < kEach; ++k) {
    const int j = k * kWarp + lane;
    y[k] = j < cols ? value[j] : 0;
    dy[k] = j < cols ? d[j] : 0;
  }
#pragma unroll
  for (int k = 0; k < kEach; ++k) dot += y[k] * dy[k];
  dot = across_warp(dot, WarpSum{});
  float* to = in.dx.row(i);
#pragma unroll
  for (int k = 0; k < kEach; ++k) y[k] *= dy[k] - dot;
  if (in.fold == OutputMode::add) {
#pragma unroll
    for (int k = 0; k < kEach; ++k) y[k] += k * kWarp + lane < cols ? to[k * kWarp + lane] : 0;
  }
#pragma unroll
  for (int k = 0; k < kEach; ++k)
    if (k * kWarp + lane < cols) to[k * kWarp + lane] = y[k];
}

__global__ void __launch_bounds__(kWideThreads) softmax_grad_wide(SoftmaxGradInput in) {
  const int64_t i = blockIdx.x, cols = in.y.cols;
  const float *y = in.y.row(i), *dy = in.dy.row(i);
  float dot = 0;
#pragma unroll 4
  for (int64_t j = threadIdx.x; j < cols; j += kWideThreads) dot += y[j] * dy[j];
  dot = across_block(dot, WarpSum{}, 0.0f);
  float* to = in.dx.row(i);
#pragma unroll 4
  for (int64_t j = threadIdx.x; j < cols; j += kWideThreads)
    fold_into(to[j], in.fold, y[j] * (dy[j] - dot));
}

}  // namespace

template <class T>
void softmax(Cuda on, Matrix<const T> x, Matrix<const T> keep, Matrix<T> y) {
  if (x.size() == 0) return;
  const int64_t share = keep.data ? x.rows / keep.rows : 1;
  const unsigned blocks = blocks_for(x.rows, kWarps);
  if (x.cols <= 4 * kWarp)
    softmax_rows<4><<<blocks, kWarps * kWarp, 0, stream(on)>>>(x, keep, share, y);
  else if (x.cols <= 16 * kWarp)
    softmax_rows<16><<<blocks, kWarps * kWarp, 0, stream(on)>>>(x, keep, share, y);
  else
    softmax_wide<<<blocks_for(x.rows, 1), kWideThreads, 0, stream(on)>>>(x, keep, share, y);
  check_launch("softmax");
}

template <class T>
void softmax_grad(Cuda on, Matrix<const T> y, Matrix<const T> dy, Matrix<T> dx, OutputMode fold) {
  if (y.size() == 0) return;
  const SoftmaxGradInput in{y, dy, dx, fold};
  const unsigned blocks = blocks_for(y.rows, kWarps);
  if (y.cols <= 4 * kWarp)
    softmax_grad_rows<4><<<blocks, kWarps * kWarp, 0, stream(on)>>>(in);
  else if (y.cols <= 16 * kWarp)
    softmax_grad_rows<16><<<blocks, kWarps * kWarp, 0, stream(on)>>>(in);
  else
    softmax_grad_wide<<<blocks_for(y.rows, 1), kWideThreads, 0, stream(on)>>>(in);
  check_launch("softmax_grad");
}

template void softmax(Cuda, Matrix<const float>, Matrix<const float>, Matrix<float>);
template void softmax_grad(Cuda, Matrix<const float>, Matrix<const float>, Matrix<float>,
                           OutputMode);

}  // namespace fovea::kernel
