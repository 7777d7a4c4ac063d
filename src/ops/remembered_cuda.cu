#include <cmath>

#include "ops/attention_kernel.h"
#include "ops/quad.cuh"
#include "ops/warp.cuh"
#include "tensor/cuda.h"

namespace fovea::kernel {
namespace {

constexpr int kWarps = 4;

struct Remembering {
  Matrix<const float> q, kv;
  Matrix<const int32_t> index;
  const int32_t* lengths;
  int heads, size;  // size = d_k
  float scale;      // 1 / √d_k
  bool aligned;
};

// What a group of lanes has read so far: max_u s_u, Σ_u exp(s_u − max) and, by quads,
// Σ_u exp(s_u − max) v_u.
template <int kQuads>
struct Reading {
  float top = -INFINITY, sum = 0;
  float4 y[kQuads] = {};

  // Makes exp(s − high) of what was exp(s − top).
  __device__ void raise(float high) {
    const float by = top > -INFINITY ? expf(top - high) : 0;
    top = high;
    sum *= by;
#pragma unroll
    for (int c = 0; c < kQuads; ++c) y[c] = {y[c].x * by, y[c].y * by, y[c].z * by, y[c].w * by};
  }
  // Joins what the lane `step` away has read, and it what this one has.
  __device__ void join(int step) {
    raise(fmaxf(top, __shfl_xor_sync(~0u, top, step)));
    sum += __shfl_xor_sync(~0u, sum, step);
#pragma unroll
    for (int c = 0; c < kQuads; ++c) {
      y[c].x += __shfl_xor_sync(~0u, y[c].x, step);
      y[c].y += __shfl_xor_sync(~0u, y[c].y, step);
      y[c].z += __shfl_xor_sync(~0u, y[c].z, step);
      y[c].w += __shfl_xor_sync(~0u, y[c].w, step);
    }
  }
};

// Note [Groups of lanes]
// A group has as many lanes as a row of a head has quads, 32 at most, and reads whole rows of k and
// v. The words of a row of the table are cut into runs of four stretches; group g of stretch w has
// the words g, g + groups, … of it. What was read is put together in the same order whether a
// warp reads one stretch of each run or all, so results do not depend on the number of rows.
constexpr int kStretches = 4;
constexpr int kAtOnce = 4;  // words of a group whose loads are under way together

template <int kCols>
struct Groups {
  static constexpr int kLanes = kCols < 128 ? kCols / 4 : kWarp;
  static constexpr int kQuads = kCols / (4 * kLanes);  // of a lane
  static constexpr int kStep = kWarp / kLanes;         // groups of a warp
  static constexpr int kStretch = kAtOnce * kStep, kRun = kStretches * kStretch;
};

// Where a thread works: on which row and head, with which share of the stretches.
struct Place {
  int pair, of_block, stretch, thread, threads;

  __device__ explicit Place(int warps)  // of a pair
      : pair(static_cast<int>(blockIdx.x * (blockDim.x / kWarp) + threadIdx.x / kWarp) / warps),
        of_block(static_cast<int>(threadIdx.x) / kWarp / warps),
        stretch(static_cast<int>(threadIdx.x) / kWarp % warps),
        thread(static_cast<int>(threadIdx.x) % (kWarp * warps)), threads(kWarp * warps) {}
};

// The words first + t · groups of a row of the table, n in all.
template <int kCols>
__device__ void read_words(Reading<Groups<kCols>::kQuads>& reading, const Remembering& r,
                           const float4* q, const int32_t* index, int first, int n, int column) {
  using G = Groups<kCols>;
  const int values = static_cast<int>(r.kv.cols / 2);
  const int lane = static_cast<int>(threadIdx.x) % G::kLanes;
  float4 k[kAtOnce][G::kQuads] = {}, v[kAtOnce][G::kQuads] = {};
  int at[kAtOnce];
#pragma unroll
  for (int t = 0; t < kAtOnce; ++t) {
    const int u = first + t * G::kStep;
    at[t] = u < n ? __ldg(index + u) : -1;
  }
#pragma unroll
  for (int t = 0; t < kAtOnce; ++t)
#pragma unroll
    for (int c = 0; c < G::kQuads; ++c) {
      if (at[t] < 0) continue;
      const float* row = r.kv.row(at[t]) + column;
      k[t][c] = load_quad(row, 4 * (lane + c * G::kLanes), r.size, r.aligned);
      v[t][c] = load_quad(row + values, 4 * (lane + c * G::kLanes), r.size, r.aligned);
    }
  float s[kAtOnce], high = reading.top;
#pragma unroll
  for (int t = 0; t < kAtOnce; ++t) {
    float part = 0;
#pragma unroll
    for (int c = 0; c < G::kQuads; ++c) part += dot(q[c], k[t][c]);
    s[t] = across_lanes(part, G::kLanes, Sum{}) * r.scale;
    if (at[t] >= 0) high = fmaxf(high, s[t]);
  }
  reading.raise(high);
#pragma unroll
  for (int t = 0; t < kAtOnce; ++t) {
    const float a = at[t] >= 0 ? expf(s[t] - high) : 0;
    reading.sum += a;
#pragma unroll
    for (int c = 0; c < G::kQuads; ++c) add_scaled(reading.y[c], a, v[t][c]);
  }
}

// What all stretches read, put together and divided by the sum.
template <int kCols>
struct Meeting {
  float4 sums[kStretches][kCols / 4];
  float tops[kStretches], totals[kStretches];

  __device__ float4 result(int quad) const {
    Reading<1> whole;
    for (int w = 0; w < kStretches; ++w) {
      if (totals[w] == 0) continue;  // it had no words
      whole.raise(fmaxf(whole.top, tops[w]));
      const float by = expf(tops[w] - whole.top);
      whole.sum += totals[w] * by;
      add_scaled(whole.y[0], by, sums[w][quad]);
    }
    const float by = whole.sum > 0 ? 1 / whole.sum : 0;  // no words: nothing was read
    return {whole.y[0].x * by, whole.y[0].y * by, whole.y[0].z * by, whole.y[0].w * by};
  }
};

// One row and head to every `warps` warps: 1 or kWarps.
template <int kCols>
__global__ void __launch_bounds__(kWarps* kWarp)
    attend_words(const __grid_constant__ Remembering r, Matrix<float> y, int warps) {
  using G = Groups<kCols>;
  __shared__ Meeting<kCols> meetings[kWarps];
  const Place place(warps);
  Meeting<kCols>& meeting = meetings[place.of_block];
  const int row = place.pair / r.heads, column = place.pair % r.heads * r.size;
  const bool there = row < r.q.rows;
  const int n = there ? __ldg(r.lengths + row) : 0;
  const int lane = static_cast<int>(threadIdx.x) % G::kLanes;
  const int group = static_cast<int>(threadIdx.x) % kWarp / G::kLanes;
  float4 q[G::kQuads] = {};
#pragma unroll
  for (int c = 0; c < G::kQuads; ++c)
    if (there)
      q[c] = load_quad(r.q.row(row) + column, 4 * (lane + c * G::kLanes), r.size, r.aligned);
  for (int w = place.stretch; w < kStretches; w += warps) {
    Reading<G::kQuads> reading;
    for (int first = w * G::kStretch; first < n; first += G::kRun)
      read_words<kCols>(reading, r, q, r.index.row(row), first + group, n, column);
#pragma unroll
    for (int step = G::kLanes; step < kWarp; step *= 2) reading.join(step);
    if (group == 0) {
#pragma unroll
      for (int c = 0; c < G::kQuads; ++c) meeting.sums[w][lane + c * G::kLanes] = reading.y[c];
      meeting.tops[w] = reading.top;
      meeting.totals[w] = reading.sum;
    }
  }
  __syncthreads();
  if (!there) return;
  for (int quad = place.thread; quad < kCols / 4; quad += place.threads)
    store_quad(y.row(row) + column, 4 * quad, r.size, r.aligned, Fold::set, meeting.result(quad));
}

// A row and head has four warps while there are few of them, for they are waited for.
int warps_for(int64_t pairs) { return pairs <= 2048 ? kWarps : 1; }

}  // namespace

template <class T>
void attend_remembered(Cuda on, Matrix<const T> q, Matrix<const T> kv, Matrix<const int32_t> index,
                       const int32_t* lengths, int64_t heads, Matrix<T> y) {
  if (q.rows == 0) return;
  const int64_t size = q.cols / heads;
  const bool aligned = size % 4 == 0 && in_quads(q.data, q.cols) && in_quads(kv.data, kv.cols) &&
                       in_quads(y.data, y.cols);
  const Remembering r{q,
                      kv,
                      index,
                      lengths,
                      static_cast<int>(heads),
                      static_cast<int>(size),
                      static_cast<float>(1 / std::sqrt(static_cast<double>(size))),
                      aligned};
  const int warps = warps_for(q.rows * heads);
  const unsigned blocks = blocks_for(q.rows * heads, kWarps / warps);
  with_width(size, [&](auto width) {
    attend_words<width><<<blocks, kWarps * kWarp, 0, stream(on)>>>(r, y, warps);
  });
  check_launch("attend_remembered");
}

template void attend_remembered(Cuda, Matrix<const float>, Matrix<const float>,
                                Matrix<const int32_t>, const int32_t*, int64_t, Matrix<float>);

}  // namespace fovea::kernel
