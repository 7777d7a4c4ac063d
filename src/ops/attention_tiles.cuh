#pragma once

#include "ops/attention_head.cuh"
#include "ops/mma.cuh"
#include "tensor/pack.cuh"

// How the bf16 attention kernels read and write tiles: rows of a head, padded with zeros.
namespace fovea::kernel {

using Bf16Attention = AttentionArgs<bf16>;
using Bf16AttentionGrad = AttentionGradArgs<bf16>;

inline constexpr int kWarpRows = 16;      // rows of a tile that one warp processes
inline constexpr int kParts = kTile / 8;  // blocks of 8 columns in a tile
inline constexpr float kLog2OfE = 1.4426950408889634f, kLogOf2 = 0.6931471805599453f;

template <int kCols>
inline constexpr int kStride = kCols + 8;  // row stride of a tile in shared memory

// The position of a thread's entries in the fragments of mma.cuh.
struct MmaLane {
  int warp, g, t;
  __device__ MmaLane()
      : warp(static_cast<int>(threadIdx.x) / kWarp), g(static_cast<int>(threadIdx.x) % kWarp / 4),
        t(static_cast<int>(threadIdx.x) % 4) {}
};

// Starts an asynchronous copy of 16 bytes to shared memory, or of zeros if not `present`.
// all_arrived() waits for the copy.
__device__ inline void copy_eight_async(Bf16* to, const bf16* from, bool present) {
  const auto address = static_cast<uint32_t>(__cvta_generic_to_shared(to));
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(address), "l"(from),
               "r"(present ? 16 : 0)
               : "memory");
}
__device__ inline void all_arrived() { asm volatile("cp.async.wait_all;" ::: "memory"); }

__device__ inline Bf16 number_at(const bf16* row, int col, int cols) {
  return __ushort_as_bfloat16(col < cols ? row[col].bits : uint16_t{0});
}

// Starts to copy `rows` rows of kCols columns. Rows from `present` on become 0. all_arrived() waits
// for the copy.
template <int kCols>
__device__ void load_tile_async(StridedRows<const bf16> from, int present, int rows,
                                const Bf16Attention& a, Bf16* to) {
  const int size = static_cast<int>(a.in.size), threads = static_cast<int>(blockDim.x);
  if (a.aligned) {
    constexpr int kAcross = kCols / 8;
    for (int at = static_cast<int>(threadIdx.x); at < rows * kAcross; at += threads) {
      const int row = at / kAcross, col = at % kAcross * 8;
      const bool exists = row < present && col < size;
      copy_eight_async(to + row * kStride<kCols> + col,
                       from.data + (exists ? row * from.stride + col : 0), exists);
    }
    return;
  }
  for (int at = static_cast<int>(threadIdx.x); at < rows * kCols; at += threads) {
    const int row = at / kCols, col = at % kCols;
    to[row * kStride<kCols> + col] =
        number_at(from.data + row * from.stride, col, row < present ? size : 0);
  }
}

// Stores a lane's entries of 16 rows and 8 · kCount columns; entries beyond the matrix are omitted.
// Multiplies rows 0 … 7 by by[0] and rows 8 … 15 by by[1].
template <int kCount>
__device__ void store_parts(StridedRows<bf16> to, int present, int col, const Bf16Attention& a,
                            OutputMode fold, const MmaSums (&parts)[kCount], const float (&by)[2]) {
  const MmaLane lane;
  const int size = static_cast<int>(a.in.size);
#pragma unroll
  for (int h = 0; h < 2; ++h) {
    if (lane.g + 8 * h >= present) continue;
    bf16* row = to.data + (lane.g + 8 * h) * to.stride;
#pragma unroll
    for (int n = 0; n < kCount; ++n) {
      const int at = col + 8 * n + 2 * lane.t;
      const Pack<2> two{parts[n][2 * h] * by[h], parts[n][2 * h + 1] * by[h]};
      if (a.aligned) {
        if (at < size) fold_pack(row + at, fold, two);
      } else {
        if (at < size) fold_pack<1>(row + at, fold, {two.at[0]});
        if (at + 1 < size) fold_pack<1>(row + at + 1, fold, {two.at[1]});
      }
    }
  }
}

}  // namespace fovea::kernel
