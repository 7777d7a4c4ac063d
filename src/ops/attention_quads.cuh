#pragma once

#include "ops/attention_head.cuh"

// How the float32 attention kernels read tiles: four columns at a time.
namespace fovea::kernel {

// Calls put(row, col, quad) for every quad (four adjacent columns) of `rows` rows of kCols columns.
// The quads of rows from `present` on are 0. Each thread starts kInFlight loads before it stores
// the first quad, to hide the latency.
template <int kCols, bool kAligned, class Put>
__device__ void put_quads(StridedRows<const float> from, int present, int rows, int size, Put put) {
  constexpr int kAcross = kCols / 4, kInFlight = kAligned ? 8 : 1;
  const int all = rows * kAcross, threads = static_cast<int>(blockDim.x);
  for (int first = static_cast<int>(threadIdx.x); first < all; first += kInFlight * threads) {
    float4 quads[kInFlight];
#pragma unroll
    for (int u = 0; u < kInFlight; ++u) {
      const int at = first + u * threads, row = at / kAcross;
      quads[u] = row < present
                     ? load_quad(from.data + row * from.stride, at % kAcross * 4, size, kAligned)
                     : float4{};
    }
#pragma unroll
    for (int u = 0; u < kInFlight; ++u) {
      const int at = first + u * threads;
      if (at < all) put(at / kAcross, at % kAcross * 4, quads[u]);
    }
  }
}

template <int kCols, class Put>
__device__ void put_quads(StridedRows<const float> from, int present, int rows,
                          const AttentionArgs<float>& a, Put put) {
  const int size = static_cast<int>(a.in.size);
  if (a.aligned)
    put_quads<kCols, true>(from, present, rows, size, put);
  else
    put_quads<kCols, false>(from, present, rows, size, put);
}

// Like put_quads() for a tile of dy. Also stores deltas[i] = ⟨y_i, dy_i⟩ for the rows i of the
// tile.
template <int kCols, class Put>
__device__ void put_outputs(StridedRows<const float> dy, StridedRows<const float> y, int present,
                            const AttentionArgs<float>& a, float* deltas, Put put) {
  constexpr int kLanes = kCols < 128 ? kCols / 4 : kWarp;  // lanes per row
  constexpr int kQuads = kCols / (4 * kLanes), kInFlight = 4 / kQuads;
  const int size = static_cast<int>(a.in.size), lane = static_cast<int>(threadIdx.x) % kLanes;
  const int step = static_cast<int>(blockDim.x) / kLanes;
  for (int first = static_cast<int>(threadIdx.x) / kLanes; first < kTile;
       first += kInFlight * step) {
    float4 of_dy[kInFlight][kQuads] = {}, of_y[kInFlight][kQuads] = {};
#pragma unroll
    for (int u = 0; u < kInFlight; ++u)
#pragma unroll
      for (int c = 0; c < kQuads; ++c) {
        const int row = first + u * step, col = 4 * (lane + c * kLanes);
        if (row >= present) continue;
        of_dy[u][c] = load_quad(dy.data + row * dy.stride, col, size, a.aligned);
        of_y[u][c] = load_quad(y.data + row * y.stride, col, size, a.aligned);
      }
#pragma unroll
    for (int u = 0; u < kInFlight; ++u) {
      const int row = first + u * step;
      float sum = 0;
#pragma unroll
      for (int c = 0; c < kQuads; ++c) {
        sum += dot(of_dy[u][c], of_y[u][c]);
        if (row < kTile) put(row, 4 * (lane + c * kLanes), of_dy[u][c]);
      }
      sum = across_lanes(sum, kLanes, WarpSum{});
      if (lane == 0 && row < kTile) deltas[row] = sum;
    }
  }
}

}  // namespace fovea::kernel
