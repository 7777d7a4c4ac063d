#include <algorithm>
#include <cassert>

#include "ops/attention_head.cuh"
#include "ops/mma.cuh"
#include "ops/pack.cuh"
#include "tensor/cuda.h"

// Attention without the matrix of weights in memory, with products in bf16 by tensor cores (Dao:
// FlashAttention-2, 2023). Sums, scores, weights before a product and their gradients are float32.
namespace fovea::kernel {
namespace {

using Call = Attending<bf16>;
using CallBack = AttendingBack<bf16>;

constexpr int kMostWarps = 4, kWarpRows = 16;
constexpr int kParts = kTile / 8;  // of 8 columns each
constexpr float kLog2OfE = 1.4426950408889634f, kLogOf2 = 0.6931471805599453f;

template <int kCols>
constexpr int kStride = kCols + 8;       // of tiles of rows of a head
constexpr int kScoreStride = kTile + 8;  // of gradients of scores

// Where a lane has its numbers: see mma.cuh.
struct Lane {
  int warp, g, t;
  __device__ Lane()
      : warp(static_cast<int>(threadIdx.x) / kWarp), g(static_cast<int>(threadIdx.x) % kWarp / 4),
        t(static_cast<int>(threadIdx.x) % 4) {}
};

// 16 bytes on their way into shared memory, or zeros. They are there after all_arrived().
__device__ void send_eight(Bf16* to, const bf16* from, bool present) {
  const auto address = static_cast<uint32_t>(__cvta_generic_to_shared(to));
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(address), "l"(from),
               "r"(present ? 16 : 0)
               : "memory");
}
__device__ void all_arrived() { asm volatile("cp.async.wait_all;" ::: "memory"); }

__device__ Bf16 number_at(const bf16* row, int col, int cols) {
  return __ushort_as_bfloat16(col < cols ? row[col].bits : uint16_t{0});
}

// Sends `rows` rows of kCols columns: those that are not present are 0.
template <int kCols>
__device__ void send_tile(Columns<const bf16> from, int present, int rows, const Call& a,
                          Bf16* to) {
  const int size = static_cast<int>(a.in.size), threads = static_cast<int>(blockDim.x);
  if (a.aligned) {
    constexpr int kAcross = kCols / 8;
    for (int at = static_cast<int>(threadIdx.x); at < rows * kAcross; at += threads) {
      const int row = at / kAcross, col = at % kAcross * 8;
      const bool exists = row < present && col < size;
      send_eight(to + row * kStride<kCols> + col,
                 from.data + (exists ? row * from.stride + col : 0), exists);
    }
    return;
  }
  for (int at = static_cast<int>(threadIdx.x); at < rows * kCols; at += threads) {
    const int row = at / kCols, col = at % kCols;
    to[row * kStride<kCols> + col] =
        number_at(from.data + row * from.stride, col, row < present ? size : 0);
  }
}

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

// A lane's numbers of 16 rows and 8 · kCount columns, those that exist, times by[0] in rows 0 … 7
// and by[1] below.
template <int kCount>
__device__ void store_parts(Columns<bf16> to, int present, int col, const Call& a, Fold fold,
                            const Part (&parts)[kCount], const float (&by)[2]) {
  const Lane lane;
  const int size = static_cast<int>(a.in.size);
#pragma unroll
  for (int h = 0; h < 2; ++h) {
    if (lane.g + 8 * h >= present) continue;
    bf16* row = to.data + (lane.g + 8 * h) * to.stride;
#pragma unroll
    for (int n = 0; n < kCount; ++n) {
      const int at = col + 8 * n + 2 * lane.t;
      const Pack<2> two{parts[n][2 * h] * by[h], parts[n][2 * h + 1] * by[h]};
      if (a.aligned) {
        if (at < size) fold_pack(row + at, fold, two);
      } else {
        if (at < size) fold_pack<1>(row + at, fold, {two.at[0]});
        if (at + 1 < size) fold_pack<1>(row + at + 1, fold, {two.at[1]});
      }
    }
  }
}

// The 16 queries of a warp, which take in one tile of keys after the other. Index h is for the
// lane's rows g and g + 8. Scores are in powers of two.
template <int kCols>
struct Reader {
  float top[2] = {-INFINITY, -INFINITY}, sum[2] = {};  // the sum is this lane's part
  Part y[kCols / 8] = {};

  // Scores of query i with the keys j + 8n and j + 8n + 1 become weights, against the highest
  // score so far.
  __device__ void normalise(const Head& head, int h, int i, int j, float scale, Part (&s)[kParts]) {
    float high = -INFINITY, part = 0;
#pragma unroll
    for (int n = 0; n < kParts; ++n)
#pragma unroll
      for (int e = 0; e < 2; ++e) {
        float& x = s[n][2 * h + e];
        x = head.sees(i, j + 8 * n + e) ? x * scale : -INFINITY;
        high = fmaxf(high, x);
      }
    high = fmaxf(top[h], across_lanes(high, 4, Larger{}));
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

template <int kCols>
struct Desk {
  Bf16 *q, *k, *v;
  uint32_t* kept;

  __device__ Desk(Bf16* memory, int queries) {
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

__device__ void drop(const Call& a, uint32_t kept, int h, Part (&w)[kParts]) {
  const Lane lane;
#pragma unroll
  for (int n = 0; n < kParts; ++n)
#pragma unroll
    for (int e = 0; e < 2; ++e)
      w[n][2 * h + e] *= kept >> (8 * n + 2 * lane.t + e) & 1 ? a.dropout.scale() : 0;
}

// The warp whose first query is `query` takes in the tile of keys at `key`.
template <int kCols>
__device__ void read(Reader<kCols>& reader, const Call& a, const Head& head,
                     const Desk<kCols>& desk, const Factor (&q)[kCols / 16], int query, int key) {
  const Lane lane;
  const Rows<kStride<kCols>> k{desk.k}, v{desk.v};
  Part s[kParts] = {};
#pragma unroll
  for (int d = 0; d < kCols / 16; ++d)
#pragma unroll
    for (int n = 0; n < kParts; n += 2)
      multiply_add(s[n], s[n + 1], q[d], k.as_turned_b(8 * n, 16 * d));  // q kᵀ
#pragma unroll
  for (int h = 0; h < 2; ++h)
    reader.normalise(head, h, query + lane.g + 8 * h, key + 2 * lane.t, a.scale * kLog2OfE, s);
  if (a.dropout.on()) {
    uint32_t* kept = desk.kept + lane.warp * kWarpRows;
    draw_kept(a.dropout, head, query, key, kWarpRows, kept, 1);
    __syncwarp();
    drop(a, kept[lane.g], 0, s);
    drop(a, kept[lane.g + 8], 1, s);
  }
#pragma unroll
  for (int j = 0; j < kParts; j += 2) {
    const Factor w = to_factor(s[j], s[j + 1]);
#pragma unroll
    for (int n = 0; n < kCols / 8; n += 2)
      multiply_add(reader.y[n], reader.y[n + 1], w, v.as_b(8 * j, 8 * n));  // Σ_j a_ij v_j
  }
}

template <int kCols>
__global__ void __launch_bounds__(kMostWarps* kWarp)
    attend_rows(const __grid_constant__ Call a, Columns<bf16> y, float* log_sums) {
  extern __shared__ uint4 memory[];
  const Head head(a.in, blockIdx.x);
  const Lane lane;
  const int rows = static_cast<int>(blockDim.x) / kWarp * kWarpRows;
  const int first = static_cast<int>(blockIdx.y) * rows, present = min(rows, head.queries - first);
  if (present <= 0) return;
  const Desk<kCols> desk(reinterpret_cast<Bf16*>(memory), rows);
  send_tile<kCols>(head.of(a.in.q, head.first_query + first), present, rows, a, desk.q);
  Reader<kCols> reader;
  Factor q[kCols / 16];
  const int begin = lane.warp * kWarpRows;  // this warp's rows of the tile
  const int seen = head.seen_before(first + present);
  for (int key = 0; key < seen; key += kTile) {
    if (key > 0) __syncthreads();  // all have read the tiles before
    const int n = min(kTile, head.keys - key);
    send_tile<kCols>(head.of(a.in.k, head.first_key + key), n, kTile, a, desk.k);
    send_tile<kCols>(head.of(a.in.v, head.first_key + key), n, kTile, a, desk.v);
    all_arrived();
    __syncthreads();
    if (begin >= present) continue;
    if (key == 0)
#pragma unroll
      for (int d = 0; d < kCols / 16; ++d) q[d] = Rows<kStride<kCols>>{desk.q}.as_a(begin, 16 * d);
    read(reader, a, head, desk, q, first + begin, key);
  }
  float by[2];
#pragma unroll
  for (int h = 0; h < 2; ++h) {
    const float sum = across_lanes(reader.sum[h], 4, Sum{});
    by[h] = sum > 0 ? 1 / sum : 0;  // no keys: nothing was read
    const int row = begin + lane.g + 8 * h;
    if (log_sums && lane.t == 0 && row < present)
      log_sums[head.entry(first + row)] = (reader.top[h] + log2f(sum)) * kLogOf2;
  }
  if (y.data)
    store_parts(head.of(y, head.first_query + first + begin), present - begin, 0, a, Fold::set,
                reader.y, by);
}

// Shared memory of a block on the way back: a tile of 16 keys per warp, one of queries, and between
// them the gradients of scores, a row per key.
template <int kCols>
struct DeskBack {
  Bf16 *k, *v, *q, *dy, *ds;
  float *log_sums, *deltas;  // the former in powers of two
  uint32_t* kept;            // for each query a word per 32 keys

  __device__ DeskBack(Bf16* memory, int keys) {
    k = memory;
    v = k + keys * kStride<kCols>;
    q = v + keys * kStride<kCols>;
    dy = q + kTile * kStride<kCols>;
    ds = dy + kTile * kStride<kCols>;
    log_sums = reinterpret_cast<float*>(ds + keys * kScoreStride);
    deltas = log_sums + kTile;
    kept = reinterpret_cast<uint32_t*>(deltas + kTile);
  }
  static size_t bytes(int keys) {
    return sizeof(Bf16) *
               static_cast<size_t>(2 * (keys + kTile) * kStride<kCols> + keys * kScoreStride) +
           4 * kTile * (2 + kMostKeys / kWarp);
  }
  static constexpr int kMostKeys = kMostWarps * kWarpRows, kWords = kMostKeys / kWarp;
};

template <int kCols>
__device__ void load_queries(const Call& a, const CallBack& back, const Head& head,
                             const DeskBack<kCols>& desk, int query, int key) {
  const int n = min(kTile, head.queries - query), row = head.first_query + query;
  send_tile<kCols>(head.of(a.in.q, row), n, kTile, a, desk.q);
  load_outputs<kCols>(head.of(back.dy, row), head.of(back.y, row), n, a, desk.dy, desk.deltas);
  const int i = static_cast<int>(threadIdx.x);
  if (i < kTile) desk.log_sums[i] = i < n ? back.log_sums[head.entry(query + i)] * kLog2OfE : 0;
  if (!a.dropout.on()) return;
  const int warps = static_cast<int>(blockDim.x) / kWarp;
  const int rows = kTile / warps, first = i / kWarp * rows;
  for (int word = 0; word < warps * kWarpRows / kWarp && key + kWarp * word < head.keys; ++word)
    draw_kept(a.dropout, head, query + first, key + kWarp * word, rows,
              desk.kept + first * DeskBack<kCols>::kWords + word, DeskBack<kCols>::kWords);
}

// Of one warp's keys (rows) and the tile's queries (columns): s becomes the weights as they were
// multiplied with v, and da becomes ds = a (da − ⟨y, dy⟩) / √d_k.
template <int kCols>
__device__ void score_gradient(const Call& a, const Head& head, const DeskBack<kCols>& desk,
                               int query, int key, Part (&s)[kParts], Part (&da)[kParts]) {
  const Lane lane;
  const float scale = a.scale * kLog2OfE;
#pragma unroll
  for (int n = 0; n < kParts; ++n)
#pragma unroll
    for (int e = 0; e < 2; ++e) {
      const int at = 8 * n + 2 * lane.t + e, i = query + at;
      const float log_sum = desk.log_sums[at], delta = desk.deltas[at];
      const uint32_t kept =
          a.dropout.on() ? desk.kept[at * DeskBack<kCols>::kWords + lane.warp / 2] : 0;
#pragma unroll
      for (int h = 0; h < 2; ++h) {
        const int row = lane.warp * kWarpRows + lane.g + 8 * h;
        const bool seen = i < head.queries && head.sees(i, key + row);
        const float w = seen ? exp2f(s[n][2 * h + e] * scale - log_sum) : 0;
        float factor = 1;
        if (a.dropout.on()) factor = kept >> row % kWarp & 1 ? a.dropout.scale() : 0;
        s[n][2 * h + e] = w * factor;
        da[n][2 * h + e] = w * (da[n][2 * h + e] * factor - delta) * a.scale;
      }
    }
}

// What the gradients of k and v of a warp's keys get from a tile of queries, and ds for dq.
template <int kCols>
__device__ void read_back(const Call& a, const Head& head, const DeskBack<kCols>& desk, int query,
                          int key, Part (&dk)[kCols / 8], Part (&dv)[kCols / 8]) {
  using Tile = Rows<kStride<kCols>>;
  const Lane lane;
  const Tile k{desk.k}, v{desk.v}, q{desk.q}, dy{desk.dy};
  Part s[kParts] = {}, da[kParts] = {};
#pragma unroll
  for (int d = 0; d < kCols; d += 16) {
    const Factor of_k = k.as_a(lane.warp * kWarpRows, d), of_v = v.as_a(lane.warp * kWarpRows, d);
#pragma unroll
    for (int n = 0; n < kParts; n += 2) {
      multiply_add(s[n], s[n + 1], of_k, q.as_turned_b(8 * n, d));     // k qᵀ
      multiply_add(da[n], da[n + 1], of_v, dy.as_turned_b(8 * n, d));  // dAᵀ = v dyᵀ
    }
  }
  score_gradient(a, head, desk, query, key, s, da);
#pragma unroll
  for (int i = 0; i < kParts; i += 2) {
    const Factor w = to_factor(s[i], s[i + 1]), ds = to_factor(da[i], da[i + 1]);
    Bf16* to = desk.ds + (lane.warp * kWarpRows + lane.g) * kScoreStride + 8 * i + 2 * lane.t;
    *reinterpret_cast<uint32_t*>(to) = ds.pairs[0];
    *reinterpret_cast<uint32_t*>(to + 8 * kScoreStride) = ds.pairs[1];
    *reinterpret_cast<uint32_t*>(to + 8) = ds.pairs[2];
    *reinterpret_cast<uint32_t*>(to + 8 * kScoreStride + 8) = ds.pairs[3];
#pragma unroll
    for (int n = 0; n < kCols / 8; n += 2) {
      multiply_add(dv[n], dv[n + 1], w, dy.as_b(8 * i, 8 * n));  // dv = Aᵀ dy
      multiply_add(dk[n], dk[n + 1], ds, q.as_b(8 * i, 8 * n));  // dk = dSᵀ q
    }
  }
}

// dq = dS k: warps take 16 queries and 32 columns at a time.
template <int kCols>
__device__ void store_dq(const Call& a, const Head& head, const DeskBack<kCols>& desk,
                         Columns<bf16> dq, Fold fold, int queries, int keys) {
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
__global__ void __launch_bounds__(kMostWarps* kWarp, kCols <= 64 ? 3 : 2)
    attend_back(const __grid_constant__ Call a, const __grid_constant__ CallBack back) {
  extern __shared__ uint4 memory[];
  const Head head(a.in, blockIdx.x);
  const int begin = static_cast<int>(threadIdx.x) / kWarp * kWarpRows;  // of the warp's keys
  const int tile = static_cast<int>(blockDim.x) / kWarp * kWarpRows;
  const DeskBack<kCols> desk(reinterpret_cast<Bf16*>(memory), tile);
  if (head.keys == 0) clear_queries(head, back.out);
  for (int key = 0; key < head.keys; key += tile) {
    if (key > 0) __syncthreads();  // all have read the tiles before
    const int keys = min(tile, head.keys - key), first = head.first_key + key;
    send_tile<kCols>(head.of(a.in.k, first), keys, tile, a, desk.k);
    send_tile<kCols>(head.of(a.in.v, first), keys, tile, a, desk.v);
    Part dk[kCols / 8] = {}, dv[kCols / 8] = {};
    for (int query = head.back ? key : 0; query < head.queries; query += kTile) {
      load_queries(a, back, head, desk, query, key);
      all_arrived();
      __syncthreads();
      if (begin < keys) read_back(a, head, desk, query, key, dk, dv);
      __syncthreads();
      store_dq(a, head, desk, head.of(back.out.dq, head.first_query + query),
               key == 0 ? back.out.fold_q : Fold::add, min(kTile, head.queries - query), keys);
    }
    store_parts(head.of(back.out.dk, first + begin), keys - begin, 0, a, back.out.fold_kv, dk,
                {1, 1});
    store_parts(head.of(back.out.dv, first + begin), keys - begin, 0, a, back.out.fold_kv, dv,
                {1, 1});
  }
}

template <int kCols>
void launch_forward(Cuda on, const Call& a, Columns<bf16> y, float* log_sums) {
  const int64_t warps =
      std::min<int64_t>(kMostWarps, (a.in.longest_query + kWarpRows - 1) / kWarpRows);
  const int rows = static_cast<int>(warps) * kWarpRows;
  const dim3 grid(static_cast<unsigned>(a.in.sentences * a.in.heads),
                  blocks_for(a.in.longest_query, rows));
  const size_t bytes = Desk<kCols>::bytes(rows);
  allow_memory(attend_rows<kCols>, bytes);
  attend_rows<kCols>
      <<<grid, static_cast<unsigned>(warps * kWarp), bytes, stream(on)>>>(a, y, log_sums);
  check_launch("attention in bf16");
}

template <int kCols>
void launch_back(Cuda on, const Call& a, const CallBack& back) {
  const int warps = a.in.longest_key <= kTile ? 2 : kMostWarps;
  const size_t bytes = DeskBack<kCols>::bytes(warps * kWarpRows);
  allow_memory(attend_back<kCols>, bytes);
  attend_back<kCols><<<static_cast<unsigned>(a.in.sentences * a.in.heads),
                       static_cast<unsigned>(warps * kWarp), bytes, stream(on)>>>(a, back);
  check_launch("attention_grad in bf16");
}

}  // namespace

void attention(Cuda on, const Heads<bf16>& in, Columns<bf16> y, float* log_sums, float* weights) {
  assert(!weights);
  static_cast<void>(weights);
  if (is_empty(in) || in.longest_query == 0) return;
  const Call a = attending(in, {read_only(y)});
  with_width(in.size, [&](auto width) { launch_forward<width>(on, a, y, log_sums); });
}

void attention_grad(Cuda on, const Heads<bf16>& in, Columns<const bf16> y, Columns<const bf16> dy,
                    const float* log_sums, const HeadsGrad<bf16>& out) {
  if (is_empty(in)) return;
  const Call a = attending(in, {y, dy, read_only(out.dq), read_only(out.dk), read_only(out.dv)});
  const CallBack back{y, dy, log_sums, out};
  with_width(in.size, [&](auto width) { launch_back<width>(on, a, back); });
}

}  // namespace fovea::kernel
