#include "cache/kv_cache_kernel.h"
#include "tensor/cuda.h"
#include "tensor/warp.cuh"

// The recurrent state of a decoder layer. It is in the pages of the cache, like keys and values.
namespace fovea::kernel {
namespace {

constexpr int kThreads = 128;

// A block per row and 128 columns.
__global__ void __launch_bounds__(kThreads) average(const __grid_constant__ StepAverage in) {
  const StepHeader& at = *in.control.header;
  const int64_t row = blockIdx.x, column = int64_t{blockIdx.y} * kThreads + threadIdx.x;
  if (row >= at.rows || column >= in.y.cols) return;
  const auto page = [&](int step) {
    return static_cast<float*>(const_cast<void*>(at.pages[(1 + step) * in.layers + in.layer]));
  };
  float before = 0;
  if (at.step > 0) {
    const int64_t slot = at.table[row * at.stride + at.step - 1];
    before = page(at.step - 1)[slot * in.y.cols + column];
  }
  const float f = in.f.row(row)[column];
  const float y = f * before + (1 - f) * in.x.row(row)[column];
  page(at.step)[row * in.y.cols + column] = y;
  in.y.row(row)[column] = y;
}

}  // namespace

void average_words(Cuda on, const StepAverage& in) {
  const dim3 blocks(static_cast<unsigned>(in.y.rows), blocks_for(in.y.cols, kThreads));
  average<<<blocks, kThreads, 0, stream(on)>>>(in);
  check_launch("average_words");
}

}  // namespace fovea::kernel
