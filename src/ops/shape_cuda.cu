#include <algorithm>
#include <limits>

#include "ops/divider.cuh"
#include "ops/shape_kernel.h"
#include "tensor/cuda.h"
#include "tensor/warp.cuh"

namespace fovea::kernel {
namespace {

constexpr int kThreads = 256, kEach = 4, kTile = 32, kTileRows = 8;

__device__ float plus(float a, float b) { return a + b; }
__device__ float4 plus(float4 a, float4 b) { return {a.x + b.x, a.y + b.y, a.z + b.z, a.w + b.w}; }

// The copy of a block of a matrix, in words. A word is one or four floats. All sizes and strides
// count words.
template <class Word>
struct WordCopy {
  const Word* from;
  Word* to;
  int64_t from_stride, to_stride, rows, cols;
};

// All loads precede the stores and have no branch. Threads past the end read the last word again.
template <class Word, class Index>
__global__ void __launch_bounds__(kThreads)
    copy_words(WordCopy<Word> c, Divider<Index> by_cols, Index count, OutputMode fold) {
  const Index first = Index{blockIdx.x} * (kThreads * kEach) + threadIdx.x;
  Word value[kEach];
  Word* to[kEach];
#pragma unroll
  for (int k = 0; k < kEach; ++k) {
    const Index n = std::min<Index>(first + k * kThreads, count - 1), i = by_cols.of(n);
    const int64_t row = static_cast<int64_t>(i);
    const int64_t column = static_cast<int64_t>(n - i * static_cast<Index>(c.cols));
    value[k] = c.from[row * c.from_stride + column];
    to[k] = c.to + row * c.to_stride + column;
  }
  if (fold == OutputMode::add) {
#pragma unroll
    for (int k = 0; k < kEach; ++k) value[k] = plus(*to[k], value[k]);
  }
#pragma unroll
  for (int k = 0; k < kEach; ++k)
    if (first + k * kThreads < count) *to[k] = value[k];
}

template <class Word>
void copy_all(Cuda on, const WordCopy<Word>& words, OutputMode fold) {
  const int64_t count = words.rows * words.cols;
  const auto launch = [&]<class Index>(Index) {
    copy_words<<<blocks_for(count, kThreads * kEach), kThreads, 0, stream(on)>>>(
        words, Divider<Index>(words.cols), static_cast<Index>(count), fold);
  };
  if (count <= std::numeric_limits<int32_t>::max())
    launch(uint32_t{});
  else
    launch(uint64_t{});
  check_launch("copy");
}

bool in_fours(const BlockCopy<float>& c) {
  return reinterpret_cast<uintptr_t>(c.from) % 16 == 0 &&
         reinterpret_cast<uintptr_t>(c.to) % 16 == 0 &&
         (c.from_stride | c.to_stride | c.cols) % 4 == 0;
}

// Transposes a tile through shared memory, so that reads (rows of x) and writes (rows of y) access
// full cache lines. The odd width of `tile` puts the numbers of a column in different banks.
__global__ void __launch_bounds__(kTile* kTileRows)
    transpose_tiles(Matrix<const float> x, unsigned tiles_across, Matrix<float> y,
                    OutputMode fold) {
  __shared__ float tile[kTile][kTile + 1];
  const int64_t top = int64_t{blockIdx.x / tiles_across} * kTile;
  const int64_t left = int64_t{blockIdx.x % tiles_across} * kTile;
#pragma unroll
  for (unsigned r = 0; r < kTile; r += kTileRows) {
    const unsigned k = r + threadIdx.y;
    if (top + k < x.rows && left + threadIdx.x < x.cols)
      tile[k][threadIdx.x] = x.row(top + k)[left + threadIdx.x];
  }
  __syncthreads();
#pragma unroll
  for (unsigned r = 0; r < kTile; r += kTileRows) {
    const unsigned k = r + threadIdx.y;
    if (left + k < y.rows && top + threadIdx.x < y.cols)
      fold_into(y.row(left + k)[top + threadIdx.x], fold, tile[threadIdx.x][k]);
  }
}

}  // namespace

template <class T>
void copy(Cuda on, const BlockCopy<T>& what) {
  BlockCopy<float> c = what;
  if (c.rows <= 0 || c.cols <= 0) return;
  if (c.rows == 1 || (c.from_stride == c.cols && c.to_stride == c.cols)) {  // contiguous
    c.cols *= c.rows;
    c.rows = 1;
    c.from_stride = c.to_stride = c.cols;
  }
  if (in_fours(c))
    copy_all<float4>(on,
                     {reinterpret_cast<const float4*>(c.from), reinterpret_cast<float4*>(c.to),
                      c.from_stride / 4, c.to_stride / 4, c.rows, c.cols / 4},
                     c.fold);
  else
    copy_all<float>(on, {c.from, c.to, c.from_stride, c.to_stride, c.rows, c.cols}, c.fold);
}

template <class T>
void transpose(Cuda on, Matrix<const T> x, Matrix<T> y, OutputMode fold) {
  if (x.size() == 0) return;
  const unsigned across = blocks_for(x.cols, kTile), down = blocks_for(x.rows, kTile);
  transpose_tiles<<<across * down, dim3(kTile, kTileRows), 0, stream(on)>>>(x, across, y, fold);
  check_launch("transpose");
}

template void copy(Cuda, const BlockCopy<float>&);
template void transpose(Cuda, Matrix<const float>, Matrix<float>, OutputMode);

}  // namespace fovea::kernel
