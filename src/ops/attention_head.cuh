#pragma once

#include <cmath>
#include <initializer_list>

#include "base/check.h"
#include "ops/attention_kernel.h"
#include "ops/dropout_lane.cuh"
#include "ops/quad.cuh"
#include "ops/warp.cuh"
#include "tensor/cuda.h"

// What the attention kernels for float32 and for bf16 products share: blocks work on one head of
// one sentence, tile by tile. Columns of a head are padded to kCols by zeros in shared memory.
namespace fovea::kernel {

inline constexpr int kTile = 32;  // keys of a tile of weights, and queries of one on the way back

template <class T>
struct Attending {
  Heads<T> in;
  DropoutLane dropout;
  float scale;   // 1 / √d_k
  bool aligned;  // every row of every matrix of the call can be read 16 bytes at a time
};

template <class T>
struct AttendingBack {
  Columns<const T> y, dy;
  const float* log_sums;
  HeadsGrad<T> out;
};

// The call, where the rows of `others` are read or written beside q, k and v.
template <class T>
Attending<T> attending(const Heads<T>& in, std::initializer_list<Columns<const T>> others) {
  constexpr int kWide = 16 / sizeof(T);
  bool aligned = in.size % kWide == 0;
  const auto look_at = [&](const Columns<const T>& columns) {
    const auto address = reinterpret_cast<uintptr_t>(columns.data);
    aligned = aligned && address % 16 == 0 && columns.stride % kWide == 0;
  };
  look_at(in.q), look_at(in.k), look_at(in.v);
  for (const Columns<const T>& columns : others) look_at(columns);
  const auto scale = static_cast<float>(1 / std::sqrt(static_cast<double>(in.size)));
  return {in, DropoutLane(in.dropout), scale, aligned};
}

template <class T>
bool is_empty(const Heads<T>& in) {
  return in.sentences == 0 || in.heads == 0;
}
template <class T>
Columns<const T> read_only(Columns<T> columns) {
  return {columns.data, columns.stride};
}

// The head of the sentence that a block works on.
struct Head {
  int index, size, heads;
  int first_query, queries, first_key, keys;  // rows of the packed batch
  bool back;

  template <class T>
  __device__ Head(const Heads<T>& in, unsigned job)
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
template <class T>
__device__ void clear_queries(const Head& head, const HeadsGrad<T>& out) {
  if (out.fold_q == Fold::add) return;
  const Columns<T> dq = head.of(out.dq, head.first_query);
  for (int at = static_cast<int>(threadIdx.x); at < head.queries * head.size;
       at += static_cast<int>(blockDim.x))
    dq.data[at / head.size * dq.stride + at % head.size] = T{};
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
  static const int most = [] {
    int found = 0;
    check_cuda(cudaDeviceGetAttribute(&found, cudaDevAttrMaxSharedMemoryPerBlockOptin, 0),
               "asking for the device's shared memory");
    return found;
  }();
  check(bytes <= static_cast<size_t>(most), Exit::usage, "heads of so many columns need ", bytes,
        " bytes of shared memory, and this GPU has ", most, "; raise model.heads");
  check_cuda(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                  static_cast<int>(bytes)),
             "shared memory of a block");
}

}  // namespace fovea::kernel
