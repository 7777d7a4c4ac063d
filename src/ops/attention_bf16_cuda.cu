#include <algorithm>
#include <cassert>

#include "ops/attention_tiles.cuh"
#include "tensor/cuda.h"

// Attention that does not store the matrix of weights, with products in bf16 on tensor cores (Dao:
// FlashAttention-2, 2023). Sums, scores, and weights before a product are float32.
namespace fovea::kernel {
namespace {

constexpr int kMostWarps = 4;

// The running softmax sums of the 16 queries of a warp. normalise() updates them for one tile of
// keys after another. A lane has the rows g and g + 8 of the 16 (MmaLane); index h = 0, 1 selects
// one of them. Scores are multiplied by log2 e, so that 2^score is the weight.
template <int kCols>
struct SoftmaxSums {
  float top[2] = {-INFINITY, -INFINITY}, sum[2] = {};  // `sum` is the sum over this lane's columns
  MmaSums y[kCols / 8] = {};

  // For query i and the keys j + 8n and j + 8n + 1, replaces the scores s by the weights 2^(s −
  // highest score so far).
  __device__ void normalise(const SentenceHead& head, int h, int i, int j, float scale,
                            MmaSums (&s)[kParts]) {
    float high = -INFINITY, part = 0;
#pragma unroll
    for (int n = 0; n < kParts; ++n)
#pragma unroll
      for (int e = 0; e < 2; ++e) {
        float& x = s[n][2 * h + e];
        x = head.sees(i, j + 8 * n + e) ? x * scale : -INFINITY;
        high = fmaxf(high, x);
      }
    high = fmaxf(top[h], across_lanes(high, 4, WarpMax{}));
#pragma unroll
    for (int n = 0; n < kParts; ++n)
#pragma unroll
      for (int e = 0; e < 2; ++e) part += s[n][2 * h + e] = exp2f(s[n][2 * h + e] - high);
    const float by = exp2f(top[h] - high);
    top[h] = high;
    sum[h] = sum[h] * by + part;
#pragma unroll
    for (int n = 0; n < kCols / 8; ++n) y[n][2 * h] *= by, y[n][2 * h + 1] *= by;
  }
};

// The layout of shared memory: q of the block's queries, k and v of a tile of keys, and one bit per
// weight that says whether dropout keeps it.
template <int kCols>
struct SharedTiles {
  Bf16 *q, *k, *v;
  uint32_t* kept;

  __device__ SharedTiles(Bf16* memory, int queries) {
    q = memory;
    k = q + queries * kStride<kCols>;
    v = k + kTile * kStride<kCols>;
    kept = reinterpret_cast<uint32_t*>(v + kTile * kStride<kCols>);
  }
  static size_t bytes(int queries) {
    return sizeof(Bf16) * static_cast<size_t>((queries + 2 * kTile) * kStride<kCols>) +
           sizeof(uint32_t) * static_cast<size_t>(queries);
  }
};

__device__ void drop(const Bf16Attention& a, uint32_t kept, int h, MmaSums (&w)[kParts]) {
  const MmaLane lane;
#pragma unroll
  for (int n = 0; n < kParts; ++n)
#pragma unroll
    for (int e = 0; e < 2; ++e)
      w[n][2 * h + e] *= kept >> (8 * n + 2 * lane.t + e) & 1 ? a.dropout.scale() : 0;
}

// Processes the tile of keys that begins at `key`, for the warp whose first query is `query`.
template <int kCols>
__device__ void accumulate(SoftmaxSums<kCols>& sums, const Bf16Attention& a,
                           const SentenceHead& head, const SharedTiles<kCols>& tiles,
                           const MmaFragment (&q)[kCols / 16], int query, int key) {
  const MmaLane lane;
  const TileView<kStride<kCols>> k{tiles.k}, v{tiles.v};
  MmaSums s[kParts] = {};
#pragma unroll
  for (int d = 0; d < kCols / 16; ++d)
#pragma unroll
    for (int n = 0; n < kParts; n += 2)
      multiply_add(s[n], s[n + 1], q[d], k.as_turned_b(8 * n, 16 * d));  // q kᵀ
  if (a.in.distances.data)
#pragma unroll
    for (int n = 0; n < kParts; ++n)
#pragma unroll
      for (int k = 0; k < 4; ++k)  // k = 2h + e
        s[n][k] +=
            distance_score(a, head, query + lane.g + 8 * (k / 2), key + 2 * lane.t + 8 * n + k % 2);
#pragma unroll
  for (int h = 0; h < 2; ++h)
    sums.normalise(head, h, query + lane.g + 8 * h, key + 2 * lane.t, a.scale * kLog2OfE, s);
  if (a.dropout.on()) {
    uint32_t* kept = tiles.kept + lane.warp * kWarpRows;
    draw_kept(a.dropout, head, query, key, kWarpRows, kept, 1);
    __syncwarp();
    drop(a, kept[lane.g], 0, s);
    drop(a, kept[lane.g + 8], 1, s);
  }
#pragma unroll
  for (int j = 0; j < kParts; j += 2) {
    const MmaFragment w = to_factor(s[j], s[j + 1]);
#pragma unroll
    for (int n = 0; n < kCols / 8; n += 2)
      multiply_add(sums.y[n], sums.y[n + 1], w, v.as_b(8 * j, 8 * n));  // Σ_j a_ij v_j
  }
}

template <int kCols>
__global__ void __launch_bounds__(kMostWarps* kWarp)
    attend_rows(const __grid_constant__ Bf16Attention a, StridedRows<bf16> y, float* log_sums) {
  extern __shared__ uint4 memory[];
  const SentenceHead head(a.in, blockIdx.x);
  const MmaLane lane;
  const int rows = static_cast<int>(blockDim.x) / kWarp * kWarpRows;
  const int first = static_cast<int>(blockIdx.y) * rows, present = min(rows, head.queries - first);
  if (present <= 0) return;
  const SharedTiles<kCols> tiles(reinterpret_cast<Bf16*>(memory), rows);
  load_tile_async<kCols>(head.of(a.in.q, head.first_query + first), present, rows, a, tiles.q);
  SoftmaxSums<kCols> sums;
  MmaFragment q[kCols / 16];
  const int begin = lane.warp * kWarpRows;  // first row of this warp in the block's tile of queries
  const int seen = head.seen_before(first + present);
  for (int key = 0; key < seen; key += kTile) {
    if (key > 0) __syncthreads();  // all warps have read the previous tiles
    const int n = min(kTile, head.keys - key);
    load_tile_async<kCols>(head.of(a.in.k, head.first_key + key), n, kTile, a, tiles.k);
    load_tile_async<kCols>(head.of(a.in.v, head.first_key + key), n, kTile, a, tiles.v);
    all_arrived();
    __syncthreads();
    if (begin >= present) continue;
    if (key == 0)
#pragma unroll
      for (int d = 0; d < kCols / 16; ++d)
        q[d] = TileView<kStride<kCols>>{tiles.q}.as_a(begin, 16 * d);
    accumulate(sums, a, head, tiles, q, first + begin, key);
  }
  float by[2];
#pragma unroll
  for (int h = 0; h < 2; ++h) {
    const float sum = across_lanes(sums.sum[h], 4, WarpSum{});
    by[h] = sum > 0 ? 1 / sum : 0;  // the factor is 0 if the query has no keys
    const int row = begin + lane.g + 8 * h;
    if (log_sums && lane.t == 0 && row < present)
      log_sums[head.entry(first + row)] = (sums.top[h] + log2f(sum)) * kLogOf2;
  }
  if (y.data)
    store_parts(head.of(y, head.first_query + first + begin), present - begin, 0, a,
                OutputMode::set, sums.y, by);
}

template <int kCols>
void launch_forward(Cuda on, const Bf16Attention& a, StridedRows<bf16> y, float* log_sums) {
  const int64_t warps =
      std::min<int64_t>(kMostWarps, (a.in.longest_query + kWarpRows - 1) / kWarpRows);
  const int rows = static_cast<int>(warps) * kWarpRows;
  const dim3 grid(static_cast<unsigned>(a.in.sentences * a.in.heads),
                  blocks_for(a.in.longest_query, rows));
  const size_t bytes = SharedTiles<kCols>::bytes(rows);
  allow_memory(attend_rows<kCols>, bytes);
  attend_rows<kCols>
      <<<grid, static_cast<unsigned>(warps * kWarp), bytes, stream(on)>>>(a, y, log_sums);
  check_launch("attention in bf16");
}

}  // namespace

void attention(Cuda on, const AttentionInput<bf16>& in, StridedRows<bf16> y, float* log_sums,
               float* weights) {
  assert(!weights);
  static_cast<void>(weights);
  if (is_empty(in) || in.longest_query == 0) return;
  const Bf16Attention a = attention_args(in, {read_only(y)});
  with_width(in.size, [&](auto width) { launch_forward<width>(on, a, y, log_sums); });
}

}  // namespace fovea::kernel
