#pragma once

#include <cmath>
#include <initializer_list>

#include "base/check.h"
#include "ops/attention_kernel.h"
#include "ops/dropout_lane.cuh"
#include "ops/quad.cuh"
#include "tensor/cuda.h"
#include "tensor/memory.h"
#include "tensor/warp.cuh"

// Code that the attention kernels for float32 and for bf16 products share. A block works on one
// head of one sentence, tile by tile. In shared memory the columns of a head are padded with zeros
// to kCols.
namespace fovea::kernel {

inline constexpr int kTile = 32;  // keys per tile; in the backward pass also queries per tile

// The arguments of all attention kernels.
template <class T>
struct AttentionArgs {
  AttentionInput<T> in;
  DropoutLane dropout;
  float scale;   // factor of the scores, 1 / √d_k
  bool aligned;  // every row of every matrix can be read 16 bytes at a time
};

// The further arguments of kernels that compute the gradient.
template <class T>
struct AttentionGradArgs {
  StridedRows<const T> y, dy;
  const float* log_sums;
  AttentionGrad<T> out;
  float* distance_parts;  // for each sentence and head, a gradient of the distance scores
};

// The arguments of a launch. `others` are the matrices that the kernel reads or writes besides q, k
// and v.
template <class T>
AttentionArgs<T> attention_args(const AttentionInput<T>& in,
                                std::initializer_list<StridedRows<const T>> others) {
  constexpr int kWide = 16 / sizeof(T);
  bool aligned = in.size % kWide == 0;
  const auto check_alignment = [&](const StridedRows<const T>& columns) {
    const auto address = reinterpret_cast<uintptr_t>(columns.data);
    aligned = aligned && address % 16 == 0 && columns.stride % kWide == 0;
  };
  check_alignment(in.q), check_alignment(in.k), check_alignment(in.v);
  for (const StridedRows<const T>& columns : others) check_alignment(columns);
  const auto scale = static_cast<float>(1 / std::sqrt(static_cast<double>(in.size)));
  return {in, DropoutLane(in.dropout), scale, aligned};
}

template <class T>
bool is_empty(const AttentionInput<T>& in) {
  return in.sentences == 0 || in.heads == 0;
}
template <class T>
StridedRows<const T> read_only(StridedRows<T> columns) {
  return {columns.data, columns.stride};
}

// The head and the sentence that a block works on.
struct SentenceHead {
  int index, size, heads;
  int first_query, queries, first_key, keys;  // first_…: rows of the packed batch
  bool causal;

  template <class T>
  __device__ SentenceHead(const AttentionInput<T>& in, unsigned job)
      : index(static_cast<int>(job % static_cast<unsigned>(in.heads))),
        size(static_cast<int>(in.size)), heads(static_cast<int>(in.heads)),
        causal(in.mask == AttentionMask::causal) {
    const int sentence = static_cast<int>(job / static_cast<unsigned>(in.heads));
    first_query = __ldg(in.query_offsets + sentence);
    queries = __ldg(in.query_offsets + sentence + 1) - first_query;
    first_key = __ldg(in.key_offsets + sentence);
    keys = __ldg(in.key_offsets + sentence + 1) - first_key;
  }

  __device__ bool sees(int i, int j) const { return j < keys && (!causal || j <= i); }
  // The number of keys that the queries with indices below `end` attend to.
  __device__ int seen_before(int end) const { return causal ? min(keys, end) : keys; }
  // The columns of this head in matrix m, beginning with row `first` of the packed batch.
  template <class T>
  __device__ StridedRows<T> of(StridedRows<T> all, int first) const {
    return {all.data + int64_t{first} * all.stride + index * size, all.stride};
  }
  // The index of the entry of query i (within the sentence) and this head in a matrix [N, heads].
  __device__ int64_t entry(int i) const { return int64_t{first_query + i} * heads + index; }
};

// √d_k times the distance score of query i and key j, to be added before the scaling. 0 beyond the
// end of a sentence.
template <class T>
__device__ float distance_score(const AttentionArgs<T>& a, const SentenceHead& head, int i, int j) {
  if (i >= head.queries || j >= head.keys) return 0;
  const DistanceScores<float>& scores = a.in.distances;
  return __ldg(scores.data + (scores.reach + j - i) * head.heads + head.index) / a.scale;
}

// Adds the gradients of a tile of scores to those of the distance scores of its sentence and head.
// The tile starts at query `query` and key `key`, and ds(i, j) is its gradient times 1 / √d_k. One
// thread sums a diagonal. REQUIRES: the threads of the block synchronize between two calls.
template <class T, class Gradients>
__device__ void add_diagonals(const AttentionArgs<T>& a, float* parts, int query, int queries,
                              int key, int keys, Gradients ds) {
  const int64_t reach = a.in.distances.reach;
  float* const to = parts + blockIdx.x * (2 * reach + 1) + reach + key - query;
  for (int at = static_cast<int>(threadIdx.x); at < queries + keys - 1;
       at += static_cast<int>(blockDim.x)) {
    const int distance = at - (queries - 1);  // j − i in the tile
    float sum = 0;
    for (int i = max(0, -distance); i < min(queries, keys - distance); ++i)
      sum += ds(i, i + distance);
    to[distance] += sum / a.scale;
  }
}

// Returns memory for AttentionGradArgs::distance_parts, filled with 0.
Buffer clear_distance_parts(Cuda on, int64_t sentences, int64_t heads, int64_t reach);
// Adds the parts in the order of the sentences.
void sum_distance_parts(Cuda on, const Buffer& parts, int64_t sentences, Matrix<float> distances,
                        OutputMode fold);

// Calls launch(parts), and then adds the parts. They are null if no such gradient is needed.
template <class T, class Launch>
void with_distance_parts(Cuda on, const AttentionInput<T>& in, const AttentionGrad<T>& out,
                         Launch launch) {
  if (!out.distances) return launch(nullptr);
  const int64_t reach = in.distances.reach;
  const Buffer parts = clear_distance_parts(on, in.sentences, in.heads, reach);
  launch(reinterpret_cast<float*>(parts.get()));
  sum_distance_parts(on, parts, in.sentences, {out.distances, 2 * reach + 1, in.heads},
                     out.fold_distances);
}

// Sets the gradient of a sentence's queries to 0, because the sentence has no keys.
template <class T>
__device__ void clear_queries(const SentenceHead& head, const AttentionGrad<T>& out) {
  if (out.fold_q == OutputMode::add) return;
  const StridedRows<T> dq = head.of(out.dq, head.first_query);
  for (int at = static_cast<int>(threadIdx.x); at < head.queries * head.size;
       at += static_cast<int>(blockDim.x))
    dq.data[at / head.size * dq.stride + at % head.size] = T{};
}

// Sets bit j of kept[i · stride] to 1 if dropout keeps the weight of query first_query + i for key
// first_key + j of the sentence. 0 ≤ i < rows, 0 ≤ j < 32. One warp executes it together. REQUIRES:
// rows is even, and first_key is a multiple of 32.
__device__ inline void draw_kept(const DropoutLane& dropout, const SentenceHead& head,
                                 int first_query, int first_key, int rows, uint32_t* kept,
                                 int stride) {
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
  for (int i = 0; i < rows; i += 2) {  // each half of the warp has one row
    float f[8];
    dropout.factors<DropoutLane::kShort>(head.entry(first_query + i + lane / 16), 0, lane % 16, f);
    uint32_t bits = 0;  // bit k is f[k] > 0; indexing f by first_key would move it to local memory
#pragma unroll
    for (int k = 0; k < 8; ++k) bits |= static_cast<uint32_t>(f[k] > 0) << k;
    bits >>= 2 * (first_key / kTile);  // bits 0, 1: columns lane % 16 and 16 + lane % 16 of the 32
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
               "query of the device's shared memory");
    return found;
  }();
  check(bytes <= static_cast<size_t>(most), ExitCode::usage, "attention heads need ", bytes,
        " bytes of shared memory, but this GPU has ", most, "; raise model.heads");
  check_cuda(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                  static_cast<int>(bytes)),
             "shared memory of a block");
}

}  // namespace fovea::kernel
