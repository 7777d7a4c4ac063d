#pragma once

#include <cuda_bf16.h>

#include <cstdint>

#include "ops/warp.cuh"

// Products of tiles by a warp's tensor cores: c [16, 8] += a [16, 16] b [16, 8], a and b in bf16, c
// in float32. Where lane = 4 g + t has its numbers (PTX ISA, mma.m16n8k16):
//   c: (g, 2t), (g, 2t + 1), (g + 8, 2t), (g + 8, 2t + 1)
//   a: pairs at (g, 2t), (g + 8, 2t), (g, 2t + 8), (g + 8, 2t + 8)
//   b: pairs at (2t, g), (2t + 8, g), down the column
// Two c side by side are therefore an a, once rounded. Tiles in shared memory are rows of `stride`
// numbers; strides of 8 more than a multiple of 16 let eight rows meet no bank twice.
namespace fovea::kernel {

using Bf16 = __nv_bfloat16;
using Part = float[4];

struct Factor {
  uint32_t pairs[4];  // an a, or two b side by side: b_0 = pairs 0 and 1, b_1 = pairs 2 and 3
};

__device__ inline uint32_t pair(float low, float high) {
  const __nv_bfloat162 both = __floats2bfloat162_rn(low, high);
  return *reinterpret_cast<const uint32_t*>(&both);
}

__device__ inline void multiply_add(Part& c, const Factor& a, uint32_t b_0, uint32_t b_1) {
  asm("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, "
      "{%8, %9}, {%0, %1, %2, %3};"
      : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
      : "r"(a.pairs[0]), "r"(a.pairs[1]), "r"(a.pairs[2]), "r"(a.pairs[3]), "r"(b_0), "r"(b_1));
}

// Two parts side by side.
__device__ inline void multiply_add(Part& left, Part& right, const Factor& a, const Factor& b) {
  multiply_add(left, a, b.pairs[0], b.pairs[1]);
  multiply_add(right, a, b.pairs[2], b.pairs[3]);
}

__device__ inline Factor to_factor(const Part& left, const Part& right) {
  return {pair(left[0], left[1]), pair(left[2], left[3]), pair(right[0], right[1]),
          pair(right[2], right[3])};
}

// Four 8 × 8 matrices, whose rows the lanes point at, eight lanes each.
__device__ inline Factor load_matrices(const Bf16* row) {
  Factor f;
  const auto address = static_cast<uint32_t>(__cvta_generic_to_shared(row));
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(f.pairs[0]), "=r"(f.pairs[1]), "=r"(f.pairs[2]), "=r"(f.pairs[3])
               : "r"(address)
               : "memory");
  return f;
}
__device__ inline Factor load_turned(const Bf16* row) {
  Factor f;
  const auto address = static_cast<uint32_t>(__cvta_generic_to_shared(row));
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(f.pairs[0]), "=r"(f.pairs[1]), "=r"(f.pairs[2]), "=r"(f.pairs[3])
               : "r"(address)
               : "memory");
  return f;
}

// The 16 × 16 numbers at (row, col) of a tile x as a factor: a = x or xᵀ, b = x or xᵀ.
template <int kStride>
struct Rows {
  const Bf16* data;

  __device__ Factor as_a(int row, int col) const {
    const int lane = static_cast<int>(threadIdx.x) % kWarp;
    return load_matrices(data + (row + lane % 16) * kStride + col + lane / 16 * 8);
  }
  __device__ Factor as_turned_a(int row, int col) const {
    const int lane = static_cast<int>(threadIdx.x) % kWarp;
    return load_turned(data + (row + lane % 8 + lane / 16 * 8) * kStride + col + lane / 8 % 2 * 8);
  }
  __device__ Factor as_b(int row, int col) const {
    const int lane = static_cast<int>(threadIdx.x) % kWarp;
    return load_turned(data + (row + lane % 16) * kStride + col + lane / 16 * 8);
  }
  __device__ Factor as_turned_b(int row, int col) const {
    const int lane = static_cast<int>(threadIdx.x) % kWarp;
    return load_matrices(data + (row + lane % 8 + lane / 16 * 8) * kStride + col +
                         lane / 8 % 2 * 8);
  }
};

}  // namespace fovea::kernel
