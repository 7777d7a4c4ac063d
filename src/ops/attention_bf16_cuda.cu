#include <algorithm>
#include <cassert>

#include "ops/attention_tiles.cuh"
#include "tensor/cuda.h"

// Attention without the matrix of weights in memory, with products in bf16 by tensor cores (Dao:
// FlashAttention-2, 2023). Sums, scores and weights before a product are float32.
namespace fovea::kernel {
namespace {

constexpr int kMostWarps = 4;

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

}  // namespace

void attention(Cuda on, const Heads<bf16>& in, Columns<bf16> y, float* log_sums, float* weights) {
  assert(!weights);
  static_cast<void>(weights);
  if (is_empty(in) || in.longest_query == 0) return;
  const Call a = attending(in, {read_only(y)});
  with_width(in.size, [&](auto width) { launch_forward<width>(on, a, y, log_sums); });
}

}  // namespace fovea::kernel
