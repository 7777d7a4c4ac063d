#include <algorithm>

#include "ops/attention_quads.cuh"
#include "tensor/cuda.h"

// Attention in float32 that does not store the matrix of weights (Dao et al.: FlashAttention,
// NeurIPS 2022).
namespace fovea::kernel {
namespace {

// Note [Lanes of a tile]
// A warp computes a block of 4 kRows rows of 32 weights. Its lanes are numbered (x, y), 8 × 4. Lane
// (x, y) has the rows y, y + 4, … of the block. In these rows it computes the weights in columns x,
// x + 8, …, and later the quads (four adjacent columns) x, x + 8, … of the result. The result needs
// no weights of other warps. With the strides below, accesses to shared memory have no bank
// conflicts.
template <int kCols>
struct TileSizes {
  static constexpr int kRows = kCols <= 64 ? 4 : 2;  // rows of a warp's block that one lane has
  static constexpr int kWarpRows = 4 * kRows;
  static constexpr int kQuads = kCols / kTile;  // quads of the result per lane and row
  static constexpr int kStride = kCols + 4;
};
constexpr int kStride = kTile + 8;            // row stride of weights
constexpr int kTransposedStride = kTile + 4;  // the same for transposed weights
constexpr int kMostWarps = 4;

// The warp of this thread, and its lane (x, y) in Note [Lanes of a tile].
struct TileLane {
  int warp, x, y;
  __device__ TileLane()
      : warp(static_cast<int>(threadIdx.x) / kWarp), x(static_cast<int>(threadIdx.x) % 8),
        y(static_cast<int>(threadIdx.x) % kWarp / 8) {}
};

template <int kCols>
__device__ void load_tile(StridedRows<const float> from, int present, int rows,
                          const AttentionArgs<float>& a, float* to) {
  put_quads<kCols>(from, present, rows, a, [=](int row, int col, float4 quad) {
    *reinterpret_cast<float4*>(to + row * TileSizes<kCols>::kStride + col) = quad;
  });
}

__device__ float4 quad_at(const float* from) { return *reinterpret_cast<const float4*>(from); }

// s_rc = ⟨row y + 4r of a, row x + 8c of b⟩. The pointer a is at row y, the pointer b at row x.
template <int kCols, int kRows>
__device__ void multiply(const float* a, const float* b, float (&s)[kRows][4]) {
  constexpr int kStride = TileSizes<kCols>::kStride;
#pragma unroll
  for (int r = 0; r < kRows; ++r)
#pragma unroll
    for (int c = 0; c < 4; ++c) s[r][c] = 0;
#pragma unroll 4
  for (int d = 0; d < kCols; d += 4) {
    float4 of_b[4];
#pragma unroll
    for (int c = 0; c < 4; ++c) of_b[c] = quad_at(b + 8 * c * kStride + d);
#pragma unroll
    for (int r = 0; r < kRows; ++r) {
      const float4 of_a = quad_at(a + 4 * r * kStride + d);
#pragma unroll
      for (int c = 0; c < 4; ++c) s[r][c] += dot(of_a, of_b[c]);
    }
  }
}

// y_r += Σ_{j < n} w_rj v_j for the rows y + 4r of this lane. The pointer w is at row y of the
// weights, whose row stride is kStep. The pointer v is at quad x of row 0 of the values. REQUIRES:
// the weights from n to the next multiple of 4 are 0.
template <int kCols, int kStep, int kRows, int kQuads>
__device__ void add_weighted(const float* w, const float* v, int n, float4 (&y)[kRows][kQuads]) {
  for (int j = 0; j < n; j += 4) {
    float4 weights[kRows];
#pragma unroll
    for (int r = 0; r < kRows; ++r) weights[r] = quad_at(w + 4 * r * kStep + j);
#pragma unroll
    for (int c = 0; c < kQuads; ++c) {
      const float* from = v + j * TileSizes<kCols>::kStride + kTile * c;
      const float4 v_0 = quad_at(from), v_1 = quad_at(from + TileSizes<kCols>::kStride),
                   v_2 = quad_at(from + 2 * TileSizes<kCols>::kStride),
                   v_3 = quad_at(from + 3 * TileSizes<kCols>::kStride);
#pragma unroll
      for (int r = 0; r < kRows; ++r) {
        add_scaled(y[r][c], weights[r].x, v_0);
        add_scaled(y[r][c], weights[r].y, v_1);
        add_scaled(y[r][c], weights[r].z, v_2);
        add_scaled(y[r][c], weights[r].w, v_3);
      }
    }
  }
}

template <int kRows, int kQuads>
__device__ void clear(float4 (&y)[kRows][kQuads]) {
#pragma unroll
  for (int r = 0; r < kRows; ++r)
#pragma unroll
    for (int c = 0; c < kQuads; ++c) y[r][c] = float4{};
}

// Stores this lane's quads of the rows first + 4r, except rows from `present` on.
template <int kRows, int kQuads>
__device__ void store_rows(StridedRows<float> to, int first, int present,
                           const AttentionArgs<float>& a, int x, OutputMode fold,
                           const float4 (&y)[kRows][kQuads]) {
#pragma unroll
  for (int r = 0; r < kRows; ++r) {
    const int row = first + 4 * r;
    if (row >= present) continue;
#pragma unroll
    for (int c = 0; c < kQuads; ++c)
      store_quad(to.data + row * to.stride, 4 * x + kTile * c, static_cast<int>(a.in.size),
                 a.aligned, fold, y[r][c]);
  }
}

// The running softmax sums of a lane's queries. normalise() updates them for one tile of keys after
// another.
template <int kCols>
struct SoftmaxSums {
  using Size = TileSizes<kCols>;
  static constexpr int kRows = Size::kRows;

  float top[kRows], sum[kRows];  // max_j s_ij so far; Σ_j exp(s_ij − max) over this lane's columns
  float4 y[kRows][Size::kQuads];

  __device__ SoftmaxSums() {
    clear(y);
#pragma unroll
    for (int r = 0; r < kRows; ++r) top[r] = -INFINITY, sum[r] = 0;
  }

  // For query i and the keys j + 8c, replaces the scores s by weights exp(s − highest score so
  // far).
  __device__ void normalise(const SentenceHead& head, int r, int i, int j, float scale,
                            float (&s)[4]) {
    float high = -INFINITY, part = 0;
#pragma unroll
    for (int c = 0; c < 4; ++c) {
      s[c] = head.sees(i, j + 8 * c) ? s[c] * scale : -INFINITY;
      high = fmaxf(high, s[c]);
    }
    high = fmaxf(top[r], across_lanes(high, 8, WarpMax{}));
#pragma unroll
    for (int c = 0; c < 4; ++c) part += s[c] = expf(s[c] - high);
    const float by = expf(top[r] - high);
    top[r] = high;
    sum[r] = sum[r] * by + part;
#pragma unroll
    for (int c = 0; c < Size::kQuads; ++c)
      y[r][c] = {y[r][c].x * by, y[r][c].y * by, y[r][c].z * by, y[r][c].w * by};
  }

  __device__ void divide() {
#pragma unroll
    for (int r = 0; r < kRows; ++r) {
      sum[r] = across_lanes(sum[r], 8, WarpSum{});
      const float by = sum[r] > 0 ? 1 / sum[r] : 0;  // the factor is 0 if the query has no keys
#pragma unroll
      for (int c = 0; c < Size::kQuads; ++c)
        y[r][c] = {y[r][c].x * by, y[r][c].y * by, y[r][c].z * by, y[r][c].w * by};
    }
  }
};

// Adds the distance scores of the queries i + 4r and keys j + 8c.
template <int kRows>
__device__ void add_distances(const AttentionArgs<float>& a, const SentenceHead& head, int i, int j,
                              float (&s)[kRows][4]) {
  if (!a.in.distances.data) return;
#pragma unroll
  for (int r = 0; r < kRows; ++r)
#pragma unroll
    for (int c = 0; c < 4; ++c) s[r][c] += distance_score(a, head, i + 4 * r, j + 8 * c);
}

// The layout of shared memory in the forward pass: q of the block's queries, k and v of a tile of
// keys, the weights of this tile, and one bit per weight that says whether dropout keeps it.
template <int kCols>
struct SharedTiles {
  float *q, *k, *v, *w;
  uint32_t* kept;

  __device__ SharedTiles(float* memory, int queries) {
    constexpr int kStep = TileSizes<kCols>::kStride;
    q = memory;
    k = q + queries * kStep;
    v = k + kTile * kStep;
    w = v + kTile * kStep;
    kept = reinterpret_cast<uint32_t*>(w + queries * kStride);
  }
  static size_t bytes(int queries) {
    return sizeof(float) * static_cast<size_t>((queries + 2 * kTile) * TileSizes<kCols>::kStride +
                                               queries * kStride + queries);
  }
};

// Processes the tile of keys that begins at `key`, for the warp whose first query is `query`.
template <int kCols>
__device__ void accumulate(SoftmaxSums<kCols>& sums, const AttentionArgs<float>& a,
                           const SentenceHead& head, const SharedTiles<kCols>& tiles, int query,
                           int key) {
  using Size = TileSizes<kCols>;
  const TileLane lane;
  const int row = lane.warp * Size::kWarpRows + lane.y;
  float s[Size::kRows][4];
  multiply<kCols>(tiles.q + row * Size::kStride, tiles.k + lane.x * Size::kStride, s);
  add_distances(a, head, query + lane.y, key + lane.x, s);
  uint32_t* kept = tiles.kept + lane.warp * Size::kWarpRows;
  if (a.dropout.on()) {
    draw_kept(a.dropout, head, query, key, Size::kWarpRows, kept, 1);
    __syncwarp();
  }
#pragma unroll
  for (int r = 0; r < Size::kRows; ++r) {
    sums.normalise(head, r, query + lane.y + 4 * r, key + lane.x, a.scale, s[r]);
    float* w = tiles.w + (row + 4 * r) * kStride + lane.x;
    const uint32_t bits = a.dropout.on() ? kept[lane.y + 4 * r] : ~0u;
    const float factor = a.dropout.on() ? a.dropout.scale() : 1;
#pragma unroll
    for (int c = 0; c < 4; ++c) w[8 * c] = bits >> (lane.x + 8 * c) & 1 ? s[r][c] * factor : 0;
  }
  __syncwarp();
  add_weighted<kCols, kStride>(tiles.w + row * kStride, tiles.v + 4 * lane.x,
                               min(kTile, head.keys - key), sums.y);
}

template <int kCols>
__global__ void __launch_bounds__(kMostWarps* kWarp)
    attend_rows(const __grid_constant__ AttentionArgs<float> a, StridedRows<float> y,
                float* log_sums) {
  using Size = TileSizes<kCols>;
  extern __shared__ float4 memory[];
  const SentenceHead head(a.in, blockIdx.x);
  const TileLane lane;
  const int rows = static_cast<int>(blockDim.x) / kWarp * Size::kWarpRows;
  const int first = static_cast<int>(blockIdx.y) * rows, present = min(rows, head.queries - first);
  if (present <= 0) return;
  const SharedTiles<kCols> tiles(reinterpret_cast<float*>(memory), rows);
  load_tile<kCols>(head.of(a.in.q, head.first_query + first), present, rows, a, tiles.q);
  SoftmaxSums<kCols> sums;
  const int begin = lane.warp * Size::kWarpRows;  // the warp's first row of the tile
  const int seen = head.seen_before(first + present);
  for (int key = 0; key < seen; key += kTile) {
    if (key > 0) __syncthreads();  // all warps have read the previous tiles
    const int n = min(kTile, head.keys - key);
    load_tile<kCols>(head.of(a.in.k, head.first_key + key), n, kTile, a, tiles.k);
    load_tile<kCols>(head.of(a.in.v, head.first_key + key), n, kTile, a, tiles.v);
    __syncthreads();
    if (begin < present) accumulate(sums, a, head, tiles, first + begin, key);
  }
  sums.divide();
  if (y.data)
    store_rows(head.of(y, head.first_query + first), begin + lane.y, present, a, lane.x,
               OutputMode::set, sums.y);
  if (!log_sums || lane.x > 0) return;
#pragma unroll
  for (int r = 0; r < Size::kRows; ++r) {
    const int row = begin + lane.y + 4 * r;
    if (row < present) log_sums[head.entry(first + row)] = sums.top[r] + logf(sums.sum[r]);
  }
}

// The layout of shared memory in the backward pass: a tile of keys, a tile of queries, the
// transposed weights between them, and the gradients of scores, both transposed and not.
template <int kCols>
struct BackwardTiles {
  float *k, *v, *q, *dy, *transposed_w, *transposed_ds, *ds, *log_sums, *deltas;
  uint32_t* kept;

  __device__ explicit BackwardTiles(float* memory) {
    constexpr int kStep = TileSizes<kCols>::kStride;
    k = memory;
    v = k + kTile * kStep;
    q = v + kTile * kStep;
    dy = q + kTile * kStep;
    transposed_w = dy + kTile * kStep;
    transposed_ds = transposed_w + kTile * kTransposedStride;
    ds = transposed_ds + kTile * kTransposedStride;
    log_sums = ds + kTile * kStride;
    deltas = log_sums + kTile;
    kept = reinterpret_cast<uint32_t*>(deltas + kTile);
  }
  static constexpr size_t bytes() {
    return sizeof(float) * kTile *
           (4 * TileSizes<kCols>::kStride + 2 * kTransposedStride + kStride + 3);
  }
};

template <int kCols>
__device__ void load_queries(const AttentionArgs<float>& a, const AttentionGradArgs<float>& back,
                             const SentenceHead& head, const BackwardTiles<kCols>& tiles, int query,
                             int key) {
  const int n = min(kTile, head.queries - query), row = head.first_query + query;
  load_tile<kCols>(head.of(a.in.q, row), n, kTile, a, tiles.q);
  put_outputs<kCols>(head.of(back.dy, row), head.of(back.y, row), n, a, tiles.deltas,
                     [&](int i, int col, float4 quad) {
                       float* to = tiles.dy + i * TileSizes<kCols>::kStride + col;
                       *reinterpret_cast<float4*>(to) = quad;
                     });
  const int i = static_cast<int>(threadIdx.x);
  if (i < kTile) tiles.log_sums[i] = i < n ? back.log_sums[head.entry(query + i)] : 0;
  if (a.dropout.on()) {
    const int rows = kTile * kWarp / static_cast<int>(blockDim.x), first = i / kWarp * rows;
    draw_kept(a.dropout, head, query + first, key, rows, tiles.kept + first, 1);
  }
}

// For the queries of one warp, computes the weights a from the scores and log Σ exp. Then computes
// the gradients of the scores, ds = a (da − ⟨y, dy⟩) / √d_k. The equation ⟨a, da⟩ = ⟨y, dy⟩ holds
// also with dropout.
template <int kCols>
__device__ void score_gradient(const AttentionArgs<float>& a, const SentenceHead& head,
                               const BackwardTiles<kCols>& tiles, int query, int key) {
  using Size = TileSizes<kCols>;
  const TileLane lane;
  const int row = lane.warp * Size::kWarpRows + lane.y;
  float s[Size::kRows][4], da[Size::kRows][4];
  multiply<kCols>(tiles.q + row * Size::kStride, tiles.k + lane.x * Size::kStride, s);
  add_distances(a, head, query + row, key + lane.x, s);
  multiply<kCols>(tiles.dy + row * Size::kStride, tiles.v + lane.x * Size::kStride, da);
  const float kept_by = a.dropout.on() ? a.dropout.scale() : 1;
#pragma unroll
  for (int r = 0; r < Size::kRows; ++r) {
    const int i = row + 4 * r;
    const uint32_t bits = a.dropout.on() ? tiles.kept[i] : ~0u;
#pragma unroll
    for (int c = 0; c < 4; ++c) {
      const int j = lane.x + 8 * c;
      const bool seen = query + i < head.queries && head.sees(query + i, key + j);
      const float w = seen ? expf(s[r][c] * a.scale - tiles.log_sums[i]) : 0;
      const float factor = bits >> j & 1 ? kept_by : 0;
      const float ds = w * (da[r][c] * factor - tiles.deltas[i]) * a.scale;
      tiles.transposed_w[j * kTransposedStride + i] = w * factor;
      tiles.transposed_ds[j * kTransposedStride + i] = ds;
      tiles.ds[i * kStride + j] = ds;
    }
  }
}

template <int kCols>
__global__ void __launch_bounds__(kTile / TileSizes<kCols>::kWarpRows * kWarp)
    attend_backward(const __grid_constant__ AttentionArgs<float> a,
                    const __grid_constant__ AttentionGradArgs<float> back) {
  using Size = TileSizes<kCols>;
  using Rows = float4[Size::kRows][Size::kQuads];
  extern __shared__ float4 memory[];
  const SentenceHead head(a.in, blockIdx.x);
  const TileLane lane;
  const BackwardTiles<kCols> tiles(reinterpret_cast<float*>(memory));
  const int begin = lane.warp * Size::kWarpRows, row = begin + lane.y;
  if (head.keys == 0) clear_queries(head, back.out);
  for (int key = 0; key < head.keys; key += kTile) {
    if (key > 0) __syncthreads();  // all warps have read the previous tiles
    const int keys = min(kTile, head.keys - key), first = head.first_key + key;
    load_tile<kCols>(head.of(a.in.k, first), keys, kTile, a, tiles.k);
    load_tile<kCols>(head.of(a.in.v, first), keys, kTile, a, tiles.v);
    Rows dk, dv;
    clear(dk);
    clear(dv);
    for (int query = head.causal ? key : 0; query < head.queries; query += kTile) {
      if (query > (head.causal ? key : 0)) __syncthreads();
      const int queries = min(kTile, head.queries - query);
      load_queries(a, back, head, tiles, query, key);
      __syncthreads();
      if (begin < queries) score_gradient(a, head, tiles, query, key);
      __syncthreads();
      if (back.distance_parts)
        add_diagonals(a, back.distance_parts, query, queries, key, keys,
                      [&](int i, int j) { return tiles.ds[i * kStride + j]; });
      if (begin < keys) {
        add_weighted<kCols, kTransposedStride>(tiles.transposed_w + row * kTransposedStride,
                                               tiles.dy + 4 * lane.x, queries, dv);  // dv = Aᵀ dy
        add_weighted<kCols, kTransposedStride>(tiles.transposed_ds + row * kTransposedStride,
                                               tiles.q + 4 * lane.x, queries, dk);  // dk = dSᵀ q
      }
      if (begin < queries) {
        Rows dq;
        clear(dq);
        add_weighted<kCols, kStride>(tiles.ds + row * kStride, tiles.k + 4 * lane.x, keys,
                                     dq);  // dq = dS k
        store_rows(head.of(back.out.dq, head.first_query + query), row, queries, a, lane.x,
                   key == 0 ? back.out.fold_q : OutputMode::add, dq);
      }
    }
    store_rows(head.of(back.out.dk, first), row, keys, a, lane.x, back.out.fold_kv, dk);
    store_rows(head.of(back.out.dv, first), row, keys, a, lane.x, back.out.fold_kv, dv);
  }
}

// Computes the matrices of weights, for pictures and alignments. A warp processes one query; lane l
// processes the keys l, l + 32, ….
__global__ void __launch_bounds__(kMostWarps* kWarp)
    weights_of_rows(const __grid_constant__ AttentionArgs<float> a, float* weights) {
  const SentenceHead head(a.in, blockIdx.x);
  const int sentence = static_cast<int>(blockIdx.x / static_cast<unsigned>(a.in.heads));
  int64_t start = 0;  // index of the first weight of this sentence in the output
  for (int b = static_cast<int>(threadIdx.x); b < sentence; b += static_cast<int>(blockDim.x))
    start += int64_t{a.in.query_offsets[b + 1] - a.in.query_offsets[b]} *
             (a.in.key_offsets[b + 1] - a.in.key_offsets[b]);
  start = across_block(start, WarpSum{}, int64_t{0}) * head.heads;

  const int i = static_cast<int>(blockIdx.y * kMostWarps + threadIdx.x / kWarp);
  if (i >= head.queries) return;
  const int lane = static_cast<int>(threadIdx.x) % kWarp, seen = head.seen_before(i + 1);
  float* row = weights + start + (int64_t{head.index} * head.queries + i) * head.keys;
  const float* q = head.of(a.in.q, head.first_query + i).data;
  float top = -INFINITY, sum = 0;
  for (int j = lane; j < seen; j += kWarp) {
    const float* k = head.of(a.in.k, head.first_key + j).data;
    float s = 0;
    for (int d = 0; d < head.size; ++d) s += q[d] * k[d];
    if (a.in.distances.data) s += distance_score(a, head, i, j);
    row[j] = s * a.scale;
    top = fmaxf(top, row[j]);
  }
  top = across_warp(top, WarpMax{});
  for (int j = lane; j < seen; j += kWarp) sum += row[j] = expf(row[j] - top);
  const float by = 1 / across_warp(sum, WarpSum{});
  for (int j = lane; j < head.keys; j += kWarp) row[j] = j < seen ? row[j] * by : 0;
}

template <int kCols>
void launch_forward(Cuda on, const AttentionArgs<float>& a, StridedRows<float> y, float* log_sums) {
  constexpr int kWarpRows = TileSizes<kCols>::kWarpRows;
  const int64_t warps =
      std::min<int64_t>(kMostWarps, (a.in.longest_query + kWarpRows - 1) / kWarpRows);
  const int rows = static_cast<int>(warps) * kWarpRows;
  const dim3 grid(static_cast<unsigned>(a.in.sentences * a.in.heads),
                  blocks_for(a.in.longest_query, rows));
  const size_t bytes = SharedTiles<kCols>::bytes(rows);
  allow_memory(attend_rows<kCols>, bytes);
  attend_rows<kCols>
      <<<grid, static_cast<unsigned>(warps * kWarp), bytes, stream(on)>>>(a, y, log_sums);
  check_launch("attention");
}

template <int kCols>
void launch_backward(Cuda on, const AttentionArgs<float>& a, const AttentionGradArgs<float>& back) {
  constexpr unsigned kThreads = kTile / TileSizes<kCols>::kWarpRows * kWarp;
  constexpr size_t kBytes = BackwardTiles<kCols>::bytes();
  allow_memory(attend_backward<kCols>, kBytes);
  attend_backward<kCols>
      <<<static_cast<unsigned>(a.in.sentences * a.in.heads), kThreads, kBytes, stream(on)>>>(a,
                                                                                             back);
  check_launch("attention_grad");
}

void launch_weights(Cuda on, const AttentionArgs<float>& a, float* weights) {
  const dim3 grid(static_cast<unsigned>(a.in.sentences * a.in.heads),
                  blocks_for(a.in.longest_query, kMostWarps));
  weights_of_rows<<<grid, kMostWarps * kWarp, 0, stream(on)>>>(a, weights);
  check_launch("attention weights");
}

}  // namespace

template <class T>
void attention(Cuda on, const AttentionInput<T>& in, StridedRows<T> y, T* log_sums, T* weights) {
  if (is_empty(in) || in.longest_query == 0) return;
  const AttentionArgs<T> a = attention_args(in, {read_only(y)});
  if (weights) launch_weights(on, a, weights);
  if (!y.data && !log_sums) return;
  with_width(in.size, [&](auto width) { launch_forward<width>(on, a, y, log_sums); });
}

template <class T>
void attention_grad(Cuda on, const AttentionInput<T>& in, StridedRows<const T> y,
                    StridedRows<const T> dy, const T* log_sums, const AttentionGrad<T>& out) {
  if (is_empty(in)) return;
  const AttentionArgs<T> a =
      attention_args(in, {y, dy, read_only(out.dq), read_only(out.dk), read_only(out.dv)});
  with_distance_parts(on, in, out, [&](float* parts) {
    const AttentionGradArgs<T> back{y, dy, log_sums, out, parts};
    with_width(in.size, [&](auto width) { launch_backward<width>(on, a, back); });
  });
}

template void attention(Cuda, const AttentionInput<float>&, StridedRows<float>, float*, float*);
template void attention_grad(Cuda, const AttentionInput<float>&, StridedRows<const float>,
                             StridedRows<const float>, const float*, const AttentionGrad<float>&);

}  // namespace fovea::kernel
