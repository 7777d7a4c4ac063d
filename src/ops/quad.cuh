#pragma once

#include <cstdint>
#include <type_traits>

#include "base/check.h"
#include "tensor/matrix.h"

// Functions that read, write and multiply rows of a head in quads: four adjacent columns at a time.
namespace fovea::kernel {

// Whether every row of a matrix can be read and written 16 bytes at a time.
inline bool in_quads(const float* data, int64_t stride) {
  return reinterpret_cast<uintptr_t>(data) % 16 == 0 && stride % 4 == 0;
}

// Loads the columns col … col + 3 of a row of `cols` columns, with 0 for columns past the end. No
// thread may write the row in the same kernel. If `aligned`, it reads 16 bytes at a time; REQUIRES
// then: in_quads() and cols % 4 == 0.
__device__ inline float4 load_quad(const float* row, int col, int cols, bool aligned) {
  float4 quad{};
  if (aligned) {
    if (col < cols) quad = __ldg(reinterpret_cast<const float4*>(row + col));
    return quad;
  }
  if (col < cols) quad.x = __ldg(row + col);
  if (col + 1 < cols) quad.y = __ldg(row + col + 1);
  if (col + 2 < cols) quad.z = __ldg(row + col + 2);
  if (col + 3 < cols) quad.w = __ldg(row + col + 3);
  return quad;
}

// Writes a quad to those of the columns col … col + 3 that exist, or adds it to them, as `fold`
// says.
__device__ inline void store_quad(float* row, int col, int cols, bool aligned, OutputMode fold,
                                  float4 quad) {
  if (aligned) {
    if (col >= cols) return;
    float4* to = reinterpret_cast<float4*>(row + col);
    if (fold == OutputMode::add) {
      const float4 was = *to;
      quad = {was.x + quad.x, was.y + quad.y, was.z + quad.z, was.w + quad.w};
    }
    *to = quad;
    return;
  }
  if (col < cols) fold_into(row[col], fold, quad.x);
  if (col + 1 < cols) fold_into(row[col + 1], fold, quad.y);
  if (col + 2 < cols) fold_into(row[col + 2], fold, quad.z);
  if (col + 3 < cols) fold_into(row[col + 3], fold, quad.w);
}

__device__ inline float dot(float4 a, float4 b) {
  return a.x * b.x + a.y * b.y + a.z * b.z + a.w * b.w;
}

__device__ inline void add_scaled(float4& to, float factor, float4 quad) {
  to.x += factor * quad.x;
  to.y += factor * quad.y;
  to.z += factor * quad.z;
  to.w += factor * quad.w;
}

// Reduces the values of each group of `lanes` neighbouring lanes; `lanes` is a power of two. Every
// lane gets the result of its group.
template <class T, class Reduce>
__device__ T across_lanes(T value, int lanes, Reduce reduce) {
  for (int step = lanes / 2; step > 0; step /= 2)
    value = reduce(value, __shfl_xor_sync(~0u, value, step));
  return value;
}

// Kernels exist for a few widths of heads. Calls launch with the smallest of these widths that
// holds d_k = `size`.
template <class Launch>
void with_width(int64_t size, Launch launch) {
  check(size <= 256, ExitCode::usage, "attention on a GPU takes heads of at most 256 columns, not ",
        size, ": use more heads, or the device cpu");
  if (size <= 32)
    launch(std::integral_constant<int, 32>{});
  else if (size <= 64)
    launch(std::integral_constant<int, 64>{});
  else if (size <= 128)
    launch(std::integral_constant<int, 128>{});
  else
    launch(std::integral_constant<int, 256>{});
}

}  // namespace fovea::kernel
