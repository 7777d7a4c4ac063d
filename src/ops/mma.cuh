#pragma once

#include <cuda_bf16.h>

#include <cstdint>

#include "tensor/warp.cuh"

// Products of tiles by a warp's tensor cores: c [16, 8] += a [16, 16] b [16, 8], with a and b in
// bf16 and c in float32. Lane 4 g + t holds the entries (row, column) (PTX ISA, mma.m16n8k16):
//   c: (g, 2t), (g, 2t + 1), (g + 8, 2t), (g + 8, 2t + 1)
//   a: pairs of adjacent columns from (g, 2t), (g + 8, 2t), (g, 2t + 8), (g + 8, 2t + 8)
//   b: pairs of adjacent rows from (2t, g), (2t + 8, g)
// So two adjacent matrices c, rounded to bf16, have the layout of one matrix a. A tile in shared
// memory has rows of `stride` entries. If the stride is 8 more than a multiple of 16, a warp reads
// eight rows without bank conflicts.
namespace fovea::kernel {

using Bf16 = __nv_bfloat16;
using MmaSums = float[4];

// The part of an operand that one lane holds.
struct MmaFragment {
  uint32_t pairs[4];  // one matrix a; or two adjacent matrices b, two pairs each
};

__device__ inline uint32_t pair(float low, float high) {
  const __nv_bfloat162 both = __floats2bfloat162_rn(low, high);
  return *reinterpret_cast<const uint32_t*>(&both);
}

__device__ inline void multiply_add(MmaSums& c, const MmaFragment& a, uint32_t b_0, uint32_t b_1) {
  asm("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, "
      "{%8, %9}, {%0, %1, %2, %3};"
      : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
      : "r"(a.pairs[0]), "r"(a.pairs[1]), "r"(a.pairs[2]), "r"(a.pairs[3]), "r"(b_0), "r"(b_1));
}

// Computes two adjacent products: left += a b_0 and right += a b_1.
__device__ inline void multiply_add(MmaSums& left, MmaSums& right, const MmaFragment& a,
                                    const MmaFragment& b) {
  multiply_add(left, a, b.pairs[0], b.pairs[1]);
  multiply_add(right, a, b.pairs[2], b.pairs[3]);
}

__device__ inline MmaFragment to_factor(const MmaSums& left, const MmaSums& right) {
  return {pair(left[0], left[1]), pair(left[2], left[3]), pair(right[0], right[1]),
          pair(right[2], right[3])};
}

// Loads four 8 × 8 matrices. Each lane passes the address of one row; lanes 8m … 8m + 7 pass the
// rows of matrix m.
__device__ inline MmaFragment load_matrices(const Bf16* row) {
  MmaFragment f;
  const auto address = static_cast<uint32_t>(__cvta_generic_to_shared(row));
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(f.pairs[0]), "=r"(f.pairs[1]), "=r"(f.pairs[2]), "=r"(f.pairs[3])
               : "r"(address)
               : "memory");
  return f;
}
__device__ inline MmaFragment load_turned(const Bf16* row) {
  MmaFragment f;
  const auto address = static_cast<uint32_t>(__cvta_generic_to_shared(row));
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(f.pairs[0]), "=r"(f.pairs[1]), "=r"(f.pairs[2]), "=r"(f.pairs[3])
               : "r"(address)
               : "memory");
  return f;
}

// A tile x in shared memory. Its members load the 16 × 16 entries that begin at (row, col) as an
// operand of multiply_add(): x as a, xᵀ as a, x as b, or xᵀ as b.
template <int kStride>
struct TileView {
  const Bf16* data;

  __device__ MmaFragment as_a(int row, int col) const {
    const int lane = static_cast<int>(threadIdx.x) % kWarp;
    return load_matrices(data + (row + lane % 16) * kStride + col + lane / 16 * 8);
  }
  __device__ MmaFragment as_turned_a(int row, int col) const {
    const int lane = static_cast<int>(threadIdx.x) % kWarp;
    return load_turned(data + (row + lane % 8 + lane / 16 * 8) * kStride + col + lane / 8 % 2 * 8);
  }
  __device__ MmaFragment as_b(int row, int col) const {
    const int lane = static_cast<int>(threadIdx.x) % kWarp;
    return load_turned(data + (row + lane % 16) * kStride + col + lane / 16 * 8);
  }
  __device__ MmaFragment as_turned_b(int row, int col) const {
    const int lane = static_cast<int>(threadIdx.x) % kWarp;
    return load_matrices(data + (row + lane % 8 + lane / 16 * 8) * kStride + col +
                         lane / 8 % 2 * 8);
  }
};

}  // namespace fovea::kernel
