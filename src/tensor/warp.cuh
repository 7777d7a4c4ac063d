#pragma once

#include <algorithm>
#include <cstdint>

namespace fovea::kernel {

inline constexpr int kWarp = 32;

struct WarpSum {
  template <class T>
  __device__ T operator()(T a, T b) const {
    return a + b;
  }
};
struct WarpMax {
  __device__ float operator()(float a, float b) const { return fmaxf(a, b); }
};

// Combines the values of the 32 lanes of a warp by `fold`, always in the same order. Every lane
// gets the result.
template <class T, class Fold>
__device__ T across_warp(T value, Fold fold) {
  for (int step = kWarp / 2; step > 0; step /= 2)
    value = fold(value, __shfl_xor_sync(~0u, value, step));
  return value;
}

// Combines the values of all threads of a block by `fold`, always in the same order. Every thread
// gets the result. REQUIRES: the block consists of whole warps, and fold(x, none) is x.
template <class T, class Fold>
__device__ T across_block(T value, Fold fold, T none) {
  __shared__ T of_warp[kWarp];
  const int thread = static_cast<int>(threadIdx.x + blockDim.x * threadIdx.y);
  const int warps = static_cast<int>(blockDim.x * blockDim.y) / kWarp;
  value = across_warp(value, fold);
  if (thread % kWarp == 0) of_warp[thread / kWarp] = value;
  __syncthreads();
  value = across_warp(thread % kWarp < warps ? of_warp[thread % kWarp] : none, fold);
  __syncthreads();  // the next call may overwrite of_warp
  return value;
}

// The number of blocks for `count` items with `each` items per block. At least 1, because CUDA
// refuses an empty grid.
inline unsigned blocks_for(int64_t count, int64_t each) {
  return static_cast<unsigned>(std::max<int64_t>(1, (count + each - 1) / each));
}

}  // namespace fovea::kernel
