#pragma once

#include "ops/attention_kernel.h"
#include "ops/dropout_lane.cuh"
#include "ops/quad.cuh"
#include "ops/warp.cuh"
#include "tensor/cuda.h"

// What the attention kernels for float32 and for bf16 products share: blocks work on one head of
// one sentence, tile by tile. Columns of a head are padded to kCols by zeros in shared memory.
namespace fovea::kernel {

inline constexpr int kTile = 32;  // keys of a tile of weights, and queries of one on the way back

struct Attending {
  Heads<float> in;
  DropoutLane dropout;
  float scale;   // 1 / √d_k
  bool aligned;  // every row of every matrix of the call: see in_quads
};

struct AttendingBack {
  Columns<const float> y, dy;
  const float* log_sums;
  HeadsGrad<float> out;
};

// The same as attention() and attention_grad() with products in bf16. REQUIRES: d_k ≤ 128.
inline constexpr int64_t kLargestBf16Head = 128;
void attend_bf16(Cuda on, const Attending& a, Columns<float> y, float* log_sums);
void attend_back_bf16(Cuda on, const Attending& a, const AttendingBack& back);

// The head of the sentence that a block works on.
struct Head {
  int index, size, heads;
  int first_query, queries, first_key, keys;  // rows of the packed batch
  bool back;

  __device__ Head(const Heads<float>& in, unsigned job)
      : index(static_cast<int>(job % static_cast<unsigned>(in.heads))),
        size(static_cast<int>(in.size)), heads(static_cast<int>(in.heads)),
        back(in.look == Look::back) {
    const int sentence = static_cast<int>(job / static_cast<unsigned>(in.heads));
    first_query = __ldg(in.query_offsets + sentence);
    queries = __ldg(in.query_offsets + sentence + 1) - first_query;
    first_key = __ldg(in.key_offsets + sentence);
    keys = __ldg(in.key_offsets + sentence + 1) - first_key;
  }

  __device__ bool sees(int i, int j) const { return j < keys && (!back || j <= i); }
  // How many keys queries before `end` see.
  __device__ int seen_before(int end) const { return back ? min(keys, end) : keys; }
  // This head's columns from row `first` of the packed batch on.
  template <class T>
  __device__ Columns<T> of(Columns<T> all, int first) const {
    return {all.data + int64_t{first} * all.stride + index * size, all.stride};
  }
  // Where query i has its number in a matrix [N, heads].
  __device__ int64_t entry(int i) const { return int64_t{first_query + i} * heads + index; }
};

// The gradient of queries that have no keys to look at.
__device__ inline void clear_queries(const Head& head, const HeadsGrad<float>& out) {
  if (out.fold_q == Fold::add) return;
  const Columns<float> dq = head.of(out.dq, head.first_query);
  for (int at = static_cast<int>(threadIdx.x); at < head.queries * head.size;
       at += static_cast<int>(blockDim.x))
    dq.data[at / head.size * dq.stride + at % head.size] = 0;
}

// put(row, col, quad) for all quads of `rows` rows of kCols columns: `present` rows are read, the
// others are 0. Some loads are under way before the first quad is put.
template <int kCols, bool kAligned, class Put>
__device__ void put_quads(Columns<const float> from, int present, int rows, int size, Put put) {
  constexpr int kAcross = kCols / 4, kUnderWay = kAligned ? 8 : 1;
  const int all = rows * kAcross, threads = static_cast<int>(blockDim.x);
  for (int first = static_cast<int>(threadIdx.x); first < all; first += kUnderWay * threads) {
    float4 quads[kUnderWay];
#pragma unroll
    for (int u = 0; u < kUnderWay; ++u) {
      const int at = first + u * threads, row = at / kAcross;
      quads[u] = row < present
                     ? load_quad(from.data + row * from.stride, at % kAcross * 4, size, kAligned)
                     : float4{};
    }
#pragma unroll
    for (int u = 0; u < kUnderWay; ++u) {
      const int at = first + u * threads;
      if (at < all) put(at / kAcross, at % kAcross * 4, quads[u]);
    }
  }
}

template <int kCols, class Put>
__device__ void put_quads(Columns<const float> from, int present, int rows, const Attending& a,
                          Put put) {
  const int size = static_cast<int>(a.in.size);
  if (a.aligned)
    put_quads<kCols, true>(from, present, rows, size, put);
  else
    put_quads<kCols, false>(from, present, rows, size, put);
}

// The same for a tile of dy, and deltas[i] = ⟨y_i, dy_i⟩.
template <int kCols, class Put>
__device__ void put_outputs(Columns<const float> dy, Columns<const float> y, int present,
                            const Attending& a, float* deltas, Put put) {
  constexpr int kLanes = kCols < 128 ? kCols / 4 : kWarp;  // of a row
  constexpr int kQuads = kCols / (4 * kLanes), kUnderWay = 4 / kQuads;
  const int size = static_cast<int>(a.in.size), lane = static_cast<int>(threadIdx.x) % kLanes;
  const int step = static_cast<int>(blockDim.x) / kLanes;
  for (int first = static_cast<int>(threadIdx.x) / kLanes; first < kTile;
       first += kUnderWay * step) {
    float4 of_dy[kUnderWay][kQuads] = {}, of_y[kUnderWay][kQuads] = {};
#pragma unroll
    for (int u = 0; u < kUnderWay; ++u)
#pragma unroll
      for (int c = 0; c < kQuads; ++c) {
        const int row = first + u * step, col = 4 * (lane + c * kLanes);
        if (row >= present) continue;
        of_dy[u][c] = load_quad(dy.data + row * dy.stride, col, size, a.aligned);
        of_y[u][c] = load_quad(y.data + row * y.stride, col, size, a.aligned);
      }
#pragma unroll
    for (int u = 0; u < kUnderWay; ++u) {
      const int row = first + u * step;
      float sum = 0;
#pragma unroll
      for (int c = 0; c < kQuads; ++c) {
        sum += dot(of_dy[u][c], of_y[u][c]);
        if (row < kTile) put(row, 4 * (lane + c * kLanes), of_dy[u][c]);
      }
      sum = across_lanes(sum, kLanes, Sum{});
      if (lane == 0 && row < kTile) deltas[row] = sum;
    }
  }
}

// Bit j of kept[i · stride]: whether dropout keeps the weight of key first_key + j for query
// first_query + i of the sentence, i < rows. For one warp. REQUIRES: rows is even, and first_key
// a multiple of 32.
__device__ inline void draw_kept(const DropoutLane& dropout, const Head& head, int first_query,
                                 int first_key, int rows, uint32_t* kept, int stride) {
  const int lane = static_cast<int>(threadIdx.x) % kWarp;
  if (head.keys > DropoutLane::kShortRow) {
#pragma unroll 1
    for (int i = 0; i < rows; ++i) {
      const float f = dropout.factor(head.entry(first_query + i), first_key + lane, head.keys);
      const uint32_t bits = __ballot_sync(~0u, f > 0);
      if (lane == 0) kept[i * stride] = bits;
    }
    return;
  }
#pragma unroll 1
  for (int i = 0; i < rows; i += 2) {  // half a warp each
    float f[8];
    dropout.factors<DropoutLane::kShort>(head.entry(first_query + i + lane / 16), 0, lane % 16, f);
    uint32_t bits = 0;  // f[first_key / 16] would keep f in local memory
#pragma unroll
    for (int k = 0; k < 8; ++k) bits |= static_cast<uint32_t>(f[k] > 0) << k;
    bits >>= 2 * (first_key / kTile);  // columns lane % 16 and 16 + lane % 16 of the 32
    const uint32_t lefts = __ballot_sync(~0u, bits & 1), rights = __ballot_sync(~0u, bits & 2);
    if (lane == 0) {
      kept[i * stride] = (lefts & 0xFFFFu) | rights << 16;
      kept[(i + 1) * stride] = lefts >> 16 | (rights & 0xFFFF0000u);
    }
  }
}

template <class... Parameters>
void allow_memory(void (*kernel)(Parameters...), size_t bytes) {
  check_cuda(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                  static_cast<int>(bytes)),
             "shared memory of a block");
}

}  // namespace fovea::kernel
