#include <algorithm>

#include "ops/attention_tiles.cuh"
#include "tensor/cuda.h"

// The gradient of attention, with products in bf16 on tensor cores. Sums, weights before a product
// and gradients of scores are float32.
namespace fovea::kernel {
namespace {

constexpr int kMostGroups = 4;           // maximum number of groups of 16 keys in a block
constexpr int kScoreStride = kTile + 8;  // row stride of weights and of gradients of scores

__device__ uint4 eight_at(const bf16* row, int col, int cols, bool aligned) {
  if (aligned) return col < cols ? *reinterpret_cast<const uint4*>(row + col) : uint4{};
  uint4 eight;
#pragma unroll
  for (int k = 0; k < 8; ++k) reinterpret_cast<Bf16*>(&eight)[k] = number_at(row, col + k, cols);
  return eight;
}

__device__ float dot_pairs(uint32_t a, uint32_t b) {
  return __uint_as_float(a << 16) * __uint_as_float(b << 16) +
         __uint_as_float(a & 0xFFFF0000u) * __uint_as_float(b & 0xFFFF0000u);
}
__device__ float dot_eights(uint4 a, uint4 b) {
  return dot_pairs(a.x, b.x) + dot_pairs(a.y, b.y) + dot_pairs(a.z, b.z) + dot_pairs(a.w, b.w);
}

// Loads a tile of dy into `to` and stores deltas[i] = ⟨y_i, dy_i⟩ for the rows i of the tile.
template <int kCols>
__device__ void load_outputs(StridedRows<const bf16> dy, StridedRows<const bf16> y, int present,
                             const Bf16Attention& a, Bf16* to, float* deltas) {
  constexpr int kLanes = kCols / 8, kInFlight = 4;  // lanes per row; loads in flight
  const int size = static_cast<int>(a.in.size), col = static_cast<int>(threadIdx.x) % kLanes * 8;
  const int step = static_cast<int>(blockDim.x) / kLanes;
  for (int first = static_cast<int>(threadIdx.x) / kLanes; first < kTile;
       first += kInFlight * step) {
    uint4 of_dy[kInFlight], of_y[kInFlight];
#pragma unroll
    for (int u = 0; u < kInFlight; ++u) {
      const int row = first + u * step, cols = row < present ? size : 0;
      of_dy[u] = eight_at(dy.data + row * dy.stride, col, cols, a.aligned);
      of_y[u] = eight_at(y.data + row * y.stride, col, cols, a.aligned);
    }
#pragma unroll
    for (int u = 0; u < kInFlight; ++u) {
      const int row = first + u * step;
      const float sum = across_lanes(dot_eights(of_dy[u], of_y[u]), kLanes, WarpSum{});
      if (row >= kTile) continue;
      *reinterpret_cast<uint4*>(to + row * kStride<kCols> + col) = of_dy[u];
      if (col == 0) deltas[row] = sum;
    }
  }
}

// Note [Two warps to a group]
// A block processes a tile of keys in groups of 16, and the queries in tiles of 32. Each group has
// two warps. For each tile of queries, each warp first computes the weights between its group of
// keys and 16 of the queries. When all weights are in shared memory, each warp adds the products
// for its group to one half of the columns of dk and dv.
struct WarpRole {
  int group, half;
  __device__ WarpRole()
      : group(static_cast<int>(threadIdx.x) / (2 * kWarp)),
        half(static_cast<int>(threadIdx.x) / kWarp % 2) {}
  __device__ int key() const { return group * kWarpRows; }   // first key of the warp's group
  __device__ int query() const { return half * kWarpRows; }  // first of its 16 queries
};

// The layout of shared memory. Weights and gradients of scores have a row per key.
template <int kCols>
struct SharedTiles {
  static constexpr int kWords = kMostGroups * kWarpRows / kWarp;
  Bf16 *k, *v, *q, *dy, *w, *ds;
  float *log_sums, *deltas, *parts;  // log_sums: base 2; parts: terms of deltas per group
  uint32_t* kept;                    // one bit per weight from draw_kept(), kWords words per query

  __device__ SharedTiles(Bf16* memory, int keys) {
    k = memory;
    v = k + keys * kStride<kCols>;
    q = v + keys * kStride<kCols>;
    dy = q + kTile * kStride<kCols>;
    w = dy + kTile * kStride<kCols>;
    ds = w + keys * kScoreStride;
    log_sums = reinterpret_cast<float*>(ds + keys * kScoreStride);
    deltas = log_sums + kTile;
    parts = deltas + kTile;
    kept = reinterpret_cast<uint32_t*>(parts + kMostGroups * kTile);
  }
  static size_t bytes(int keys) {
    const int numbers = 2 * (keys + kTile) * kStride<kCols> + 2 * keys * kScoreStride;
    return sizeof(Bf16) * static_cast<size_t>(numbers) + 4 * kTile * (2 + kMostGroups + kWords);
  }
};

// Loads a tile of queries. If there is only one tile of keys, ⟨y, dy⟩ is not loaded: it is computed
// from the weights, which is more accurate.
template <int kCols>
__device__ void load_queries(const Bf16Attention& a, const Bf16AttentionGrad& back,
                             const SentenceHead& head, const SharedTiles<kCols>& tiles, int query,
                             int key, bool only_tile) {
  const int n = min(kTile, head.queries - query), row = head.first_query + query;
  load_tile_async<kCols>(head.of(a.in.q, row), n, kTile, a, tiles.q);
  if (only_tile)
    load_tile_async<kCols>(head.of(back.dy, row), n, kTile, a, tiles.dy);
  else
    load_outputs<kCols>(head.of(back.dy, row), head.of(back.y, row), n, a, tiles.dy, tiles.deltas);
  const int i = static_cast<int>(threadIdx.x);
  if (i < kTile) tiles.log_sums[i] = i < n ? back.log_sums[head.entry(query + i)] * kLog2OfE : 0;
  if (!a.dropout.on()) return;
  const int warps = static_cast<int>(blockDim.x) / kWarp;
  const int rows = kTile / warps, first = i / kWarp * rows;
  for (int word = 0; word < warps / 4 && key + kWarp * word < head.keys; ++word)
    draw_kept(a.dropout, head, query + first, key + kWarp * word, rows,
              tiles.kept + first * SharedTiles<kCols>::kWords + word, SharedTiles<kCols>::kWords);
}

// For a group of 16 keys (rows) and 16 queries (columns): the weights w, and da, the gradients of
// the weights after dropout.
struct Scores {
  MmaSums w[2] = {}, da[2] = {};

  template <int kCols>
  __device__ void multiply(const SharedTiles<kCols>& tiles, const WarpRole& role) {
    using Tile = TileView<kStride<kCols>>;
    const Tile k{tiles.k}, v{tiles.v}, q{tiles.q}, dy{tiles.dy};
#pragma unroll
    for (int d = 0; d < kCols; d += 16) {
      multiply_add(w[0], w[1], k.as_a(role.key(), d), q.as_turned_b(role.query(), d));     // k qᵀ
      multiply_add(da[0], da[1], v.as_a(role.key(), d), dy.as_turned_b(role.query(), d));  // v dyᵀ
    }
  }

  // Turns the scores in w into weights, applies dropout, and stores the weights in shared memory.
  template <int kCols>
  __device__ void weigh(const Bf16Attention& a, const SentenceHead& head,
                        const SharedTiles<kCols>& tiles, const WarpRole& role, int query, int key) {
    const MmaLane lane;
    const float scale = a.scale * kLog2OfE;
#pragma unroll
    for (int n = 0; n < 2; ++n) {
      float kept_weights[4];
#pragma unroll
      for (int e = 0; e < 2; ++e) {
        const int at = role.query() + 8 * n + 2 * lane.t + e, i = query + at;
        const float log_sum = tiles.log_sums[at];
        const uint32_t kept =
            a.dropout.on() ? tiles.kept[at * SharedTiles<kCols>::kWords + role.group / 2] : 0;
#pragma unroll
        for (int h = 0; h < 2; ++h) {
          const int row = role.key() + lane.g + 8 * h;
          const bool seen = i < head.queries && head.sees(i, key + row);
          float &weight = w[n][2 * h + e], factor = 1;
          if (a.in.distances.data) weight += distance_score(a, head, i, key + row);
          weight = seen ? exp2f(weight * scale - log_sum) : 0;
          if (a.dropout.on()) factor = kept >> row % kWarp & 1 ? a.dropout.scale() : 0;
          kept_weights[2 * h + e] = weight * factor;
          da[n][2 * h + e] *= factor;
        }
      }
      put(tiles.w, role, n, kept_weights);
    }
  }

  // For each query i, stores this group's terms of Σ_j a_ij da_ij = ⟨y_i, dy_i⟩.
  __device__ void put_parts(float* parts, const WarpRole& role) const {
    const MmaLane lane;
#pragma unroll
    for (int n = 0; n < 2; ++n)
#pragma unroll
      for (int e = 0; e < 2; ++e) {
        float sum = w[n][e] * da[n][e] + w[n][2 + e] * da[n][2 + e];
#pragma unroll
        for (int step = 4; step < kWarp; step *= 2) sum += __shfl_xor_sync(~0u, sum, step);
        if (lane.g == 0) parts[role.group * kTile + role.query() + 8 * n + 2 * lane.t + e] = sum;
      }
  }

  // Stores ds = a (da − ⟨y, dy⟩) / √d_k in shared memory. delta(query) returns ⟨y, dy⟩.
  template <class Delta>
  __device__ void put_gradient(const Bf16Attention& a, Bf16* to, const WarpRole& role,
                               Delta delta) {
    const MmaLane lane;
#pragma unroll
    for (int n = 0; n < 2; ++n) {
      float ds[4];
#pragma unroll
      for (int e = 0; e < 2; ++e) {
        const float delta_i = delta(role.query() + 8 * n + 2 * lane.t + e);
#pragma unroll
        for (int h = 0; h < 2; ++h)
          ds[2 * h + e] = w[n][2 * h + e] * (da[n][2 * h + e] - delta_i) * a.scale;
      }
      put(to, role, n, ds);
    }
  }

  __device__ static void put(Bf16* to, const WarpRole& role, int n, const float (&part)[4]) {
    const MmaLane lane;
    to += (role.key() + lane.g) * kScoreStride + role.query() + 8 * n + 2 * lane.t;
    *reinterpret_cast<uint32_t*>(to) = pair(part[0], part[1]);
    *reinterpret_cast<uint32_t*>(to + 8 * kScoreStride) = pair(part[2], part[3]);
  }
};

// For a tile of queries and one group of keys, adds the products to half of the columns of dk and
// dv.
template <int kCols>
__device__ void add_products(const SharedTiles<kCols>& tiles, const WarpRole& role, int queries,
                             MmaSums (&dk)[kCols / 16], MmaSums (&dv)[kCols / 16]) {
  const TileView<kStride<kCols>> q{tiles.q}, dy{tiles.dy};
  const TileView<kScoreStride> w{tiles.w}, ds{tiles.ds};
  for (int i = 0; i < queries; i += 16) {
    const MmaFragment of_w = w.as_a(role.key(), i), of_ds = ds.as_a(role.key(), i);
#pragma unroll
    for (int n = 0; n < kCols / 16; n += 2) {
      const int col = role.half * (kCols / 2) + 8 * n;
      multiply_add(dv[n], dv[n + 1], of_w, dy.as_b(i, col));  // dv = Aᵀ dy
      multiply_add(dk[n], dk[n + 1], of_ds, q.as_b(i, col));  // dk = dSᵀ q
    }
  }
}

// dq = dS k. A warp computes 16 queries and 32 columns at a time.
template <int kCols>
__device__ void store_dq(const Bf16Attention& a, const SharedTiles<kCols>& tiles,
                         StridedRows<bf16> dq, OutputMode fold, int queries, int keys) {
  const TileView<kStride<kCols>> k{tiles.k};
  const TileView<kScoreStride> ds{tiles.ds};
  const int warps = static_cast<int>(blockDim.x) / kWarp;
  for (int job = static_cast<int>(threadIdx.x) / kWarp; job < 2 * kCols / kTile; job += warps) {
    const int row = job % 2 * kWarpRows, col = job / 2 * kTile;
    if (row >= queries) continue;
    MmaSums parts[kParts] = {};
    for (int j = 0; j < keys; j += 16) {
      const MmaFragment of_ds = ds.as_turned_a(j, row);
#pragma unroll
      for (int n = 0; n < kParts; n += 2)
        multiply_add(parts[n], parts[n + 1], of_ds, k.as_b(j, col + 8 * n));
    }
    store_parts({dq.data + row * dq.stride, dq.stride}, queries - row, col, a, fold, parts, {1, 1});
  }
}

template <int kCols>
__global__ void __launch_bounds__(2 * kMostGroups * kWarp, kCols <= 128 ? 2 : 1)
    attend_backward(const __grid_constant__ Bf16Attention a,
                    const __grid_constant__ Bf16AttentionGrad back) {
  extern __shared__ uint4 memory[];
  const SentenceHead head(a.in, blockIdx.x);
  const WarpRole role;
  const int tile = static_cast<int>(blockDim.x) / (2 * kWarp) * kWarpRows;
  const SharedTiles<kCols> tiles(reinterpret_cast<Bf16*>(memory), tile);
  const bool only_tile = head.keys <= tile;
  if (head.keys == 0) clear_queries(head, back.out);
  for (int key = 0; key < head.keys; key += tile) {
    if (key > 0) __syncthreads();  // all warps have read the previous tiles
    const int keys = min(tile, head.keys - key), first = head.first_key + key;
    const int groups = (keys + kWarpRows - 1) / kWarpRows, start = head.causal ? key : 0;
    load_tile_async<kCols>(head.of(a.in.k, first), keys, tile, a, tiles.k);
    load_tile_async<kCols>(head.of(a.in.v, first), keys, tile, a, tiles.v);
    MmaSums dk[kCols / 16] = {}, dv[kCols / 16] = {};
    for (int query = start; query < head.queries; query += kTile) {
      const int queries = min(kTile, head.queries - query);
      const bool weighs = role.group < groups && role.query() < queries;
      if (query > start) __syncthreads();
      load_queries(a, back, head, tiles, query, key, only_tile);
      all_arrived();
      __syncthreads();
      Scores scores;
      if (weighs) {
        scores.multiply(tiles, role);
        scores.weigh(a, head, tiles, role, query, key);
        if (only_tile) scores.put_parts(tiles.parts, role);
      }
      if (only_tile) __syncthreads();
      if (weighs)
        scores.put_gradient(a, tiles.ds, role, [&](int i) {
          if (!only_tile) return tiles.deltas[i];
          float sum = 0;
          for (int g = 0; g < groups; ++g) sum += tiles.parts[g * kTile + i];
          return sum;
        });
      __syncthreads();
      if (back.distance_parts)
        add_diagonals(a, back.distance_parts, query, queries, key, keys, [&](int i, int j) {
          return __bfloat162float(tiles.ds[j * kScoreStride + i]);
        });
      if (role.group < groups) add_products(tiles, role, queries, dk, dv);
      store_dq(a, tiles, head.of(back.out.dq, head.first_query + query),
               key == 0 ? back.out.fold_q : OutputMode::add, queries, keys);
    }
    const int col = role.half * (kCols / 2), mine = first + role.key();
    store_parts(head.of(back.out.dk, mine), keys - role.key(), col, a, back.out.fold_kv, dk,
                {1, 1});
    store_parts(head.of(back.out.dv, mine), keys - role.key(), col, a, back.out.fold_kv, dv,
                {1, 1});
  }
}

template <int kCols>
void launch_backward(Cuda on, const Bf16Attention& a, const Bf16AttentionGrad& back) {
  const int groups = a.in.longest_key <= 2 * kWarpRows ? 2 : kMostGroups;
  const size_t bytes = SharedTiles<kCols>::bytes(groups * kWarpRows);
  allow_memory(attend_backward<kCols>, bytes);
  attend_backward<kCols><<<static_cast<unsigned>(a.in.sentences * a.in.heads),
                           static_cast<unsigned>(2 * groups * kWarp), bytes, stream(on)>>>(a, back);
  check_launch("attention_grad in bf16");
}

}  // namespace

void attention_grad(Cuda on, const AttentionInput<bf16>& in, StridedRows<const bf16> y,
                    StridedRows<const bf16> dy, const float* log_sums,
                    const AttentionGrad<bf16>& out) {
  if (is_empty(in)) return;
  const Bf16Attention a =
      attention_args(in, {y, dy, read_only(out.dq), read_only(out.dk), read_only(out.dv)});
  with_distance_parts(on, in, out, [&](float* parts) {
    const Bf16AttentionGrad back{y, dy, log_sums, out, parts};
    with_width(in.size, [&](auto width) { launch_backward<width>(on, a, back); });
  });
}

}  // namespace fovea::kernel
