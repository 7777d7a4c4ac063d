#include <algorithm>

#include "ops/attention_tiles.cuh"
#include "tensor/cuda.h"

// The gradient of attention with products in bf16 by tensor cores; sums, weights before a product
// and gradients of scores are float32.
namespace fovea::kernel {
namespace {

constexpr int kMostGroups = 4;           // of 16 keys
constexpr int kScoreStride = kTile + 8;  // of weights and gradients of scores

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

// A tile of dy, and deltas[i] = ⟨y_i, dy_i⟩.
template <int kCols>
__device__ void load_outputs(Columns<const bf16> dy, Columns<const bf16> y, int present,
                             const Call& a, Bf16* to, float* deltas) {
  constexpr int kLanes = kCols / 8, kUnderWay = 4;  // lanes of a row
  const int size = static_cast<int>(a.in.size), col = static_cast<int>(threadIdx.x) % kLanes * 8;
  const int step = static_cast<int>(blockDim.x) / kLanes;
  for (int first = static_cast<int>(threadIdx.x) / kLanes; first < kTile;
       first += kUnderWay * step) {
    uint4 of_dy[kUnderWay], of_y[kUnderWay];
#pragma unroll
    for (int u = 0; u < kUnderWay; ++u) {
      const int row = first + u * step, cols = row < present ? size : 0;
      of_dy[u] = eight_at(dy.data + row * dy.stride, col, cols, a.aligned);
      of_y[u] = eight_at(y.data + row * y.stride, col, cols, a.aligned);
    }
#pragma unroll
    for (int u = 0; u < kUnderWay; ++u) {
      const int row = first + u * step;
      const float sum = across_lanes(dot_eights(of_dy[u], of_y[u]), kLanes, Sum{});
      if (row >= kTile) continue;
      *reinterpret_cast<uint4*>(to + row * kStride<kCols> + col) = of_dy[u];
      if (col == 0) deltas[row] = sum;
    }
  }
}

// Note [Two warps to a group]
// A block has a tile of keys in groups of 16, and reads the queries in tiles of 32. Of each group
// and tile, its two warps first compute the weights of 16 queries each; then, once all weights are
// in shared memory, what dk and dv get of them, half of the columns each.
struct Seat {
  int group, half;
  __device__ Seat()
      : group(static_cast<int>(threadIdx.x) / (2 * kWarp)),
        half(static_cast<int>(threadIdx.x) / kWarp % 2) {}
  __device__ int key() const { return group * kWarpRows; }   // the first of the group
  __device__ int query() const { return half * kWarpRows; }  // of those the warp weighs
};

// Shared memory of a block. Weights and gradients of scores have a row per key.
template <int kCols>
struct Desk {
  static constexpr int kWords = kMostGroups * kWarpRows / kWarp;
  Bf16 *k, *v, *q, *dy, *w, *ds;
  float *log_sums, *deltas, *parts;  // log_sums in powers of two; parts of deltas by each group
  uint32_t* kept;                    // for each query a word per 32 keys

  __device__ Desk(Bf16* memory, int keys) {
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

// All that is read of a tile of queries. Where there is but one tile of keys, ⟨y, dy⟩ is had from
// the weights, more exactly.
template <int kCols>
__device__ void load_queries(const Call& a, const CallBack& back, const Head& head,
                             const Desk<kCols>& desk, int query, int key, bool only_tile) {
  const int n = min(kTile, head.queries - query), row = head.first_query + query;
  send_tile<kCols>(head.of(a.in.q, row), n, kTile, a, desk.q);
  if (only_tile)
    send_tile<kCols>(head.of(back.dy, row), n, kTile, a, desk.dy);
  else
    load_outputs<kCols>(head.of(back.dy, row), head.of(back.y, row), n, a, desk.dy, desk.deltas);
  const int i = static_cast<int>(threadIdx.x);
  if (i < kTile) desk.log_sums[i] = i < n ? back.log_sums[head.entry(query + i)] * kLog2OfE : 0;
  if (!a.dropout.on()) return;
  const int warps = static_cast<int>(blockDim.x) / kWarp;
  const int rows = kTile / warps, first = i / kWarp * rows;
  for (int word = 0; word < warps / 4 && key + kWarp * word < head.keys; ++word)
    draw_kept(a.dropout, head, query + first, key + kWarp * word, rows,
              desk.kept + first * Desk<kCols>::kWords + word, Desk<kCols>::kWords);
}

// Of a group of keys (rows) and 16 queries (columns): the weights, and the gradients of the weights
// as they were multiplied with v.
struct Scores {
  Part w[2] = {}, da[2] = {};

  template <int kCols>
  __device__ void multiply(const Desk<kCols>& desk, const Seat& seat) {
    using Tile = Rows<kStride<kCols>>;
    const Tile k{desk.k}, v{desk.v}, q{desk.q}, dy{desk.dy};
#pragma unroll
    for (int d = 0; d < kCols; d += 16) {
      multiply_add(w[0], w[1], k.as_a(seat.key(), d), q.as_turned_b(seat.query(), d));     // k qᵀ
      multiply_add(da[0], da[1], v.as_a(seat.key(), d), dy.as_turned_b(seat.query(), d));  // v dyᵀ
    }
  }

  // Scores become weights, of which those that dropout left go into shared memory.
  template <int kCols>
  __device__ void weigh(const Call& a, const Head& head, const Desk<kCols>& desk, const Seat& seat,
                        int query, int key) {
    const Lane lane;
    const float scale = a.scale * kLog2OfE;
#pragma unroll
    for (int n = 0; n < 2; ++n) {
      float left[4];
#pragma unroll
      for (int e = 0; e < 2; ++e) {
        const int at = seat.query() + 8 * n + 2 * lane.t + e, i = query + at;
        const float log_sum = desk.log_sums[at];
        const uint32_t kept =
            a.dropout.on() ? desk.kept[at * Desk<kCols>::kWords + seat.group / 2] : 0;
#pragma unroll
        for (int h = 0; h < 2; ++h) {
          const int row = seat.key() + lane.g + 8 * h;
          const bool seen = i < head.queries && head.sees(i, key + row);
          float &weight = w[n][2 * h + e], factor = 1;
          weight = seen ? exp2f(weight * scale - log_sum) : 0;
          if (a.dropout.on()) factor = kept >> row % kWarp & 1 ? a.dropout.scale() : 0;
          left[2 * h + e] = weight * factor;
          da[n][2 * h + e] *= factor;
        }
      }
      put(desk.w, seat, n, left);
    }
  }

  // What this group has of Σ_j a_ij da_ij = ⟨y_i, dy_i⟩.
  __device__ void put_parts(float* parts, const Seat& seat) const {
    const Lane lane;
#pragma unroll
    for (int n = 0; n < 2; ++n)
#pragma unroll
      for (int e = 0; e < 2; ++e) {
        float sum = w[n][e] * da[n][e] + w[n][2 + e] * da[n][2 + e];
#pragma unroll
        for (int step = 4; step < kWarp; step *= 2) sum += __shfl_xor_sync(~0u, sum, step);
        if (lane.g == 0) parts[seat.group * kTile + seat.query() + 8 * n + 2 * lane.t + e] = sum;
      }
  }

  // ds = a (da − ⟨y, dy⟩) / √d_k into shared memory, where delta(query) gives ⟨y, dy⟩.
  template <class Delta>
  __device__ void put_gradient(const Call& a, Bf16* to, const Seat& seat, Delta delta) {
    const Lane lane;
#pragma unroll
    for (int n = 0; n < 2; ++n) {
      float ds[4];
#pragma unroll
      for (int e = 0; e < 2; ++e) {
        const float less = delta(seat.query() + 8 * n + 2 * lane.t + e);
#pragma unroll
        for (int h = 0; h < 2; ++h)
          ds[2 * h + e] = w[n][2 * h + e] * (da[n][2 * h + e] - less) * a.scale;
      }
      put(to, seat, n, ds);
    }
  }

  __device__ static void put(Bf16* to, const Seat& seat, int n, const float (&part)[4]) {
    const Lane lane;
    to += (seat.key() + lane.g) * kScoreStride + seat.query() + 8 * n + 2 * lane.t;
    *reinterpret_cast<uint32_t*>(to) = pair(part[0], part[1]);
    *reinterpret_cast<uint32_t*>(to + 8 * kScoreStride) = pair(part[2], part[3]);
  }
};

// What half of the columns of dk and dv of a group get from a tile of queries.
template <int kCols>
__device__ void add_products(const Desk<kCols>& desk, const Seat& seat, int queries,
                             Part (&dk)[kCols / 16], Part (&dv)[kCols / 16]) {
  const Rows<kStride<kCols>> q{desk.q}, dy{desk.dy};
  const Rows<kScoreStride> w{desk.w}, ds{desk.ds};
  for (int i = 0; i < queries; i += 16) {
    const Factor of_w = w.as_a(seat.key(), i), of_ds = ds.as_a(seat.key(), i);
#pragma unroll
    for (int n = 0; n < kCols / 16; n += 2) {
      const int col = seat.half * (kCols / 2) + 8 * n;
      multiply_add(dv[n], dv[n + 1], of_w, dy.as_b(i, col));  // dv = Aᵀ dy
      multiply_add(dk[n], dk[n + 1], of_ds, q.as_b(i, col));  // dk = dSᵀ q
    }
  }
}

// dq = dS k: warps take 16 queries and 32 columns at a time.
template <int kCols>
__device__ void store_dq(const Call& a, const Desk<kCols>& desk, Columns<bf16> dq, Fold fold,
                         int queries, int keys) {
  const Rows<kStride<kCols>> k{desk.k};
  const Rows<kScoreStride> ds{desk.ds};
  const int warps = static_cast<int>(blockDim.x) / kWarp;
  for (int job = static_cast<int>(threadIdx.x) / kWarp; job < 2 * kCols / kTile; job += warps) {
    const int row = job % 2 * kWarpRows, col = job / 2 * kTile;
    if (row >= queries) continue;
    Part parts[kParts] = {};
    for (int j = 0; j < keys; j += 16) {
      const Factor of_ds = ds.as_turned_a(j, row);
#pragma unroll
      for (int n = 0; n < kParts; n += 2)
        multiply_add(parts[n], parts[n + 1], of_ds, k.as_b(j, col + 8 * n));
    }
    store_parts({dq.data + row * dq.stride, dq.stride}, queries - row, col, a, fold, parts, {1, 1});
  }
}

template <int kCols>
__global__ void __launch_bounds__(2 * kMostGroups * kWarp, kCols <= 128 ? 2 : 1)
    attend_back(const __grid_constant__ Call a, const __grid_constant__ CallBack back) {
  extern __shared__ uint4 memory[];
  const Head head(a.in, blockIdx.x);
  const Seat seat;
  const int tile = static_cast<int>(blockDim.x) / (2 * kWarp) * kWarpRows;
  const Desk<kCols> desk(reinterpret_cast<Bf16*>(memory), tile);
  const bool only_tile = head.keys <= tile;
  if (head.keys == 0) clear_queries(head, back.out);
  for (int key = 0; key < head.keys; key += tile) {
    if (key > 0) __syncthreads();  // all have read the tiles before
    const int keys = min(tile, head.keys - key), first = head.first_key + key;
    const int groups = (keys + kWarpRows - 1) / kWarpRows, start = head.back ? key : 0;
    send_tile<kCols>(head.of(a.in.k, first), keys, tile, a, desk.k);
    send_tile<kCols>(head.of(a.in.v, first), keys, tile, a, desk.v);
    Part dk[kCols / 16] = {}, dv[kCols / 16] = {};
    for (int query = start; query < head.queries; query += kTile) {
      const int queries = min(kTile, head.queries - query);
      const bool weighs = seat.group < groups && seat.query() < queries;
      if (query > start) __syncthreads();
      load_queries(a, back, head, desk, query, key, only_tile);
      all_arrived();
      __syncthreads();
      Scores scores;
      if (weighs) {
        scores.multiply(desk, seat);
        scores.weigh(a, head, desk, seat, query, key);
        if (only_tile) scores.put_parts(desk.parts, seat);
      }
      if (only_tile) __syncthreads();
      if (weighs)
        scores.put_gradient(a, desk.ds, seat, [&](int i) {
          if (!only_tile) return desk.deltas[i];
          float sum = 0;
          for (int g = 0; g < groups; ++g) sum += desk.parts[g * kTile + i];
          return sum;
        });
      __syncthreads();
      if (seat.group < groups) add_products(desk, seat, queries, dk, dv);
      store_dq(a, desk, head.of(back.out.dq, head.first_query + query),
               key == 0 ? back.out.fold_q : Fold::add, queries, keys);
    }
    const int col = seat.half * (kCols / 2), mine = first + seat.key();
    store_parts(head.of(back.out.dk, mine), keys - seat.key(), col, a, back.out.fold_kv, dk,
                {1, 1});
    store_parts(head.of(back.out.dv, mine), keys - seat.key(), col, a, back.out.fold_kv, dv,
                {1, 1});
  }
}

template <int kCols>
void launch_back(Cuda on, const Call& a, const CallBack& back) {
  const int groups = a.in.longest_key <= 2 * kWarpRows ? 2 : kMostGroups;
  const size_t bytes = Desk<kCols>::bytes(groups * kWarpRows);
  allow_memory(attend_back<kCols>, bytes);
  attend_back<kCols><<<static_cast<unsigned>(a.in.sentences * a.in.heads),
                       static_cast<unsigned>(2 * groups * kWarp), bytes, stream(on)>>>(a, back);
  check_launch("attention_grad in bf16");
}

}  // namespace

void attention_grad(Cuda on, const Heads<bf16>& in, Columns<const bf16> y, Columns<const bf16> dy,
                    const float* log_sums, const HeadsGrad<bf16>& out) {
  if (is_empty(in)) return;
  const Call a = attending(in, {y, dy, read_only(out.dq), read_only(out.dk), read_only(out.dv)});
  const CallBack back{y, dy, log_sums, out};
  with_width(in.size, [&](auto width) { launch_back<width>(on, a, back); });
}

}  // namespace fovea::kernel
