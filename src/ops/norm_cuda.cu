#include <algorithm>

#include "ops/dropout_lane.cuh"
#include "ops/norm_kernel.h"
#include "tensor/cuda.h"
#include "tensor/memory.h"
#include "tensor/pack.cuh"
#include "tensor/warp.cuh"

namespace fovea::kernel {
namespace {

constexpr int kThreads = 128, kBackThreads = 256;

// Sums the values of each group of kCount neighbouring lanes. Every lane gets the sum of its group.
template <int kCount>
__device__ float across_lanes(float value) {
#pragma unroll
  for (int step = kCount / 2; step > 0; step /= 2) value += __shfl_xor_sync(~0u, value, step);
  return value;
}

// Note [Pairs of columns]
// kAcross neighbouring threads process a row. One draw of DropoutLane (a call of its generator)
// gives the factors of eight columns that are kLanes apart. For each of its kSets runs, a thread
// makes two neighbouring draws, so that it has eight pairs of neighbouring columns. If kWhole, a
// row has exactly kCols columns, and all matrices can be read and written in pairs.
template <int kLanes, int kAcross_, int kSets, bool kWhole>
struct ThreadColumns {
  static constexpr int kAcross = kAcross_, kPairs = 8 * kSets, kCols = 2 * kPairs * kAcross;
  static constexpr int kDraws = kLanes / 2;  // threads per run, each with two draws
  int lane, cols;

  __device__ explicit ThreadColumns(int64_t columns)
      : lane(static_cast<int>(threadIdx.x) % kAcross), cols(static_cast<int>(columns)) {}

  __device__ int run(int set) const { return set * (kAcross / kDraws) + lane / kDraws; }
  __device__ int column(int pair) const {
    return (run(pair / 8) * 8 + pair % 8) * kLanes + lane % kDraws * 2;
  }
  __device__ bool has(int column) const { return kWhole || column < cols; }

  template <class T>
  __device__ Pack<2> read(const T* row, int pair) const {
    const int j = column(pair);
    if constexpr (kWhole) return load<2>(row + j);
    return {has(j) ? load<1>(row + j).at[0] : 0, has(j + 1) ? load<1>(row + j + 1).at[0] : 0};
  }
  template <class T>
  __device__ void write(T* row, int pair, OutputMode fold, const Pack<2>& two) const {
    const int j = column(pair);
    if constexpr (kWhole) {
      fold_pack(row + j, fold, two);
    } else {
      if (has(j)) fold_pack<1>(row + j, fold, {two.at[0]});
      if (has(j + 1)) fold_pack<1>(row + j + 1, fold, {two.at[1]});
    }
  }

  // Applies dropout to the thread's pairs of a row.
  __device__ void drop(const DropoutLane& mask, int64_t row, Pack<2> (&pairs)[kPairs]) const {
#pragma unroll
    for (int set = 0; set < kSets; ++set)
#pragma unroll
      for (int e = 0; e < 2; ++e) {
        float keep[8];
        mask.factors<kLanes>(row, run(set), lane % kDraws * 2 + e, keep);
#pragma unroll
        for (int k = 0; k < 8; ++k) pairs[8 * set + k].at[e] *= keep[k];
      }
  }
};

// Calls value(i, e) for each number: e = 0, 1 of pair i, i < kCount.
template <int kCount, class Value>
__device__ void each_number(Value value) {
#pragma unroll
  for (int i = 0; i < kCount; ++i)
#pragma unroll
    for (int e = 0; e < 2; ++e) value(i, e);
}

template <class S, class T>
__global__ void __launch_bounds__(kThreads) norm_rows(NormInput<T> in, NormOutput<T> out) {
  constexpr int kPairs = S::kPairs;
  const S at(in.x.cols);
  const int64_t i = int64_t{blockIdx.x} * (kThreads / S::kAcross) + threadIdx.x / S::kAcross;
  const int64_t row = std::min(i, in.x.rows - 1);  // threads past the end only read
  Pack<2> z[kPairs], f[kPairs] = {};
#pragma unroll
  for (int k = 0; k < kPairs; ++k) z[k] = at.read(in.x.row(row), k);
  if (in.f.data) {
#pragma unroll
    for (int k = 0; k < kPairs; ++k) f[k] = at.read(in.f.row(row), k);
    if (in.dropout.rate > 0) at.drop(DropoutLane(in.dropout), row, f);
  }
  float sum = 0, squares = 0;
  each_number<kPairs>([&](int k, int e) { sum += z[k].at[e] += f[k].at[e]; });
  const bool centred = in.type == NormType::layer;
  const float n = static_cast<float>(at.cols);
  const float mean = centred ? across_lanes<S::kAcross>(sum) / n : 0;
  each_number<kPairs>([&](int k, int e) {
    z[k].at[e] = at.has(at.column(k) + e) ? z[k].at[e] - mean : 0;
    squares += z[k].at[e] * z[k].at[e];
  });
  const float variance = across_lanes<S::kAcross>(squares) / n;
  const float scale = 1 / sqrtf(variance + static_cast<float>(in.epsilon));
  each_number<kPairs>([&](int k, int e) { z[k].at[e] *= scale; });
  if (i >= in.x.rows) return;
  if (out.normalised.data)
#pragma unroll
    for (int k = 0; k < kPairs; ++k) at.write(out.normalised.row(row), k, OutputMode::set, z[k]);
#pragma unroll
  for (int k = 0; k < kPairs; ++k) {
    const Pack<2> g = at.read(in.g, k), b = centred ? at.read(in.b, k) : Pack<2>{};
    z[k] = {g.at[0] * z[k].at[0] + b.at[0], g.at[1] * z[k].at[1] + b.at[1]};
  }
#pragma unroll
  for (int k = 0; k < kPairs; ++k) at.write(out.y.row(row), k, OutputMode::set, z[k]);
  if (out.rounded.data)
#pragma unroll
    for (int k = 0; k < kPairs; ++k) at.write(out.rounded.row(row), k, OutputMode::set, z[k]);
  if (out.inverse_deviation && at.lane == 0) out.inverse_deviation[row] = scale;
}

// Calls body(column, factor) for the columns of a wide row that this thread processes; `factor` is
// the dropout factor.
template <class Body>
__device__ void each_wide(int64_t cols, const Dropout& dropout, Body body) {
  const int64_t row = blockIdx.x;
  const int lane = static_cast<int>(threadIdx.x) % kWarp;
  const DropoutLane mask(dropout);
  for (int64_t run = threadIdx.x / kWarp; run * 8 * kWarp < cols; run += kBackThreads / kWarp) {
    float keep[8] = {1, 1, 1, 1, 1, 1, 1, 1};
    if (mask.on()) mask.factors<DropoutLane::kLong>(row, run, lane, keep);
#pragma unroll
    for (int k = 0; k < 8; ++k) {
      const int64_t j = (run * 8 + k) * kWarp + lane;
      if (j < cols) body(j, keep[k]);
    }
  }
}

template <class T>
__device__ float number(const T* from) {
  return load<1>(from).at[0];
}

// A block processes one row. It reads the row and computes the dropout factors three times: for the
// mean, the variance and the result.
template <class T>
__global__ void __launch_bounds__(kBackThreads) norm_wide(NormInput<T> in, NormOutput<T> out) {
  const int64_t row = blockIdx.x;
  const float* x = in.x.row(row);
  const T* f = in.f.data ? in.f.row(row) : nullptr;
  const Dropout dropout = f ? in.dropout : Dropout{};
  const auto each = [&](auto body) {
    each_wide(in.x.cols, dropout,
              [&](int64_t j, float keep) { body(j, f ? x[j] + keep * number(f + j) : x[j]); });
  };
  const float n = static_cast<float>(in.x.cols);
  float sum = 0, squares = 0;
  const bool centred = in.type == NormType::layer;
  if (centred) each([&](int64_t, float z) { sum += z; });
  const float mean = centred ? across_block(sum, WarpSum{}, 0.0f) / n : 0;
  each([&](int64_t, float z) { squares += (z - mean) * (z - mean); });
  const float variance = across_block(squares, WarpSum{}, 0.0f) / n;
  const float scale = 1 / sqrtf(variance + static_cast<float>(in.epsilon));
  each([&](int64_t j, float z) {
    const Pack<1> normalised{(z - mean) * scale},
        y{in.g[j] * normalised.at[0] + (centred ? in.b[j] : 0)};
    store(out.y.row(row) + j, y);
    if (out.rounded.data) store(out.rounded.row(row) + j, y);
    if (out.normalised.data) store(out.normalised.row(row) + j, normalised);
  });
  if (out.inverse_deviation && threadIdx.x == 0) out.inverse_deviation[row] = scale;
}

// The partial sums of dg and db. The rows of x are divided into strips. Row s of `sums` holds the
// sums over strip s: dg in its first half, db in its second half.
struct Strips {
  int64_t each;  // rows per strip
  Matrix<float> sums;
};

// A block has groups of kAcross threads, and each group has summed the columns of other rows. Adds
// the sums of all groups for each column.
template <class S>
__device__ void sum_groups(const S& at, const Pack<2> (&own)[S::kPairs], float* to) {
  constexpr int kGroups = kBackThreads / S::kAcross;
  __shared__ Pack<2> of_group[kGroups][S::kCols / 2];
  const int group = static_cast<int>(threadIdx.x) / S::kAcross;
  __syncthreads();  // threads may still read of_group in the previous call
#pragma unroll
  for (int k = 0; k < S::kPairs; ++k) of_group[group][at.column(k) / 2] = own[k];
  __syncthreads();
  for (int j = static_cast<int>(threadIdx.x); j < at.cols; j += kBackThreads) {
    float sum = 0;
#pragma unroll
    for (int g = 0; g < kGroups; ++g) sum += of_group[g][j / 2].at[j % 2];
    to[j] = sum;
  }
}

template <class S, class T>
__global__ void __launch_bounds__(kBackThreads) norm_back(NormGrad<T> in, Strips strips) {
  constexpr int kPairs = S::kPairs, kGroups = kBackThreads / S::kAcross;
  const S at(in.dy.cols);
  const int64_t first = blockIdx.x * strips.each, end = std::min(first + strips.each, in.dy.rows);
  const float width = static_cast<float>(at.cols);
  const bool centred = in.type == NormType::layer;
  Pack<2> dg[kPairs] = {}, db[kPairs] = {};
  for (int64_t next = first; next < end; next += kGroups) {  // a row per group of threads
    const int64_t i = next + threadIdx.x / S::kAcross, row = std::min(i, end - 1);
    Pack<2> d[kPairs], n[kPairs];
    float sum = 0, along = 0;
#pragma unroll
    for (int k = 0; k < kPairs; ++k) d[k] = at.read(in.dy.row(row), k);
#pragma unroll
    for (int k = 0; k < kPairs; ++k) n[k] = at.read(in.normalised.row(row), k);
    const float scale = in.inverse_deviation[row], counts = i < end ? 1 : 0;
    each_number<kPairs>([&](int k, int e) {
      db[k].at[e] += counts * d[k].at[e];
      dg[k].at[e] += counts * d[k].at[e] * n[k].at[e];
    });
#pragma unroll
    for (int k = 0; k < kPairs; ++k) {
      const Pack<2> g = at.read(in.g, k);
      d[k] = {d[k].at[0] * g.at[0], d[k].at[1] * g.at[1]};
    }
    each_number<kPairs>([&](int k, int e) {
      sum += d[k].at[e];
      along += d[k].at[e] * n[k].at[e];
    });
    const float mean = centred ? across_lanes<S::kAcross>(sum) / width : 0;
    along = across_lanes<S::kAcross>(along) / width;
    each_number<kPairs>(
        [&](int k, int e) { d[k].at[e] = scale * (d[k].at[e] - mean - n[k].at[e] * along); });
    if (i >= end) continue;
    if (in.dx.data)
#pragma unroll
      for (int k = 0; k < kPairs; ++k) at.write(in.dx.row(row), k, in.fold_x, d[k]);
    if (!in.df.data) continue;
    if (in.dropout.rate > 0) at.drop(DropoutLane(in.dropout), row, d);
#pragma unroll
    for (int k = 0; k < kPairs; ++k) at.write(in.df.row(row), k, in.fold_f, d[k]);
  }
  float* const sums = strips.sums.row(blockIdx.x);
  if (in.dg) sum_groups(at, dg, sums);
  if (in.db) sum_groups(at, db, sums + at.cols);
}

template <class T>
__global__ void __launch_bounds__(kBackThreads) norm_back_wide(NormGrad<T> in) {
  const int64_t row = blockIdx.x;
  const float* dy = in.dy.row(row);
  const T* x = in.normalised.row(row);
  float sum = 0, along = 0;
  each_wide(in.dy.cols, {}, [&](int64_t j, float) {
    const float d = in.g[j] * dy[j];
    sum += d;
    along += d * number(x + j);
  });
  const float mean = in.type == NormType::layer
                         ? across_block(sum, WarpSum{}, 0.0f) / static_cast<float>(in.dy.cols)
                         : 0;
  along = across_block(along, WarpSum{}, 0.0f) / static_cast<float>(in.dy.cols);
  const float scale = in.inverse_deviation[row];
  each_wide(in.dy.cols, in.df.data ? in.dropout : Dropout{}, [&](int64_t j, float keep) {
    const float dz = scale * (in.g[j] * dy[j] - mean - number(x + j) * along);
    if (in.dx.data) fold_pack<1>(in.dx.row(row) + j, in.fold_x, {dz});
    if (in.df.data) fold_pack<1>(in.df.row(row) + j, in.fold_f, {dz * keep});
  });
}

// If rows are wide (see norm_back_wide), computes dg and db of each strip with one thread per
// column.
template <class T>
__global__ void __launch_bounds__(kThreads) sum_wide(NormGrad<T> in, Strips strips) {
  const int64_t j = int64_t{blockIdx.x} * kThreads + threadIdx.x;
  if (j >= in.dy.cols) return;
  const int64_t end = std::min((blockIdx.y + 1) * strips.each, in.dy.rows);
  float dg = 0, db = 0;
#pragma unroll 4
  for (int64_t i = blockIdx.y * strips.each; i < end; ++i) {
    const float d = in.dy.row(i)[j];
    dg += d * number(in.normalised.row(i) + j);
    db += d;
  }
  strips.sums.row(blockIdx.y)[j] = dg;
  strips.sums.row(blockIdx.y)[in.dy.cols + j] = db;
}

// Adds the sums of all strips, in the order of the strips.
constexpr int kStripGroups = 8;
template <class T>
__global__ void __launch_bounds__(kWarp* kStripGroups)
    add_strips(Matrix<float> sums, NormGrad<T> in) {
  __shared__ float part[kStripGroups][kWarp];
  const int64_t j = int64_t{blockIdx.x} * kWarp + threadIdx.x, cols = sums.cols / 2;
  float* const to = j < cols ? in.dg : in.db;
  float sum = 0;
  if (j < sums.cols && to) {
#pragma unroll 8
    for (int64_t s = threadIdx.y; s < sums.rows; s += kStripGroups) sum += sums.row(s)[j];
  }
  part[threadIdx.y][threadIdx.x] = sum;
  __syncthreads();
  if (threadIdx.y > 0 || j >= sums.cols || !to) return;
#pragma unroll
  for (int k = 1; k < kStripGroups; ++k) sum += part[k][threadIdx.x];
  fold_into(to[j < cols ? j : j - cols], j < cols ? in.fold_g : in.fold_b, sum);
}

// If a row of `cols` columns fits in a warp, calls narrow with the matching type ThreadColumns,
// otherwise calls wide().
template <class Narrow, class Wide>
void choose(int64_t cols, bool pairs, Narrow narrow, Wide wide) {
  const auto fitting = [&]<int kLanes, int kAcross, int kSets>() {
    if (pairs && cols == ThreadColumns<kLanes, kAcross, kSets, true>::kCols)
      narrow.template operator()<ThreadColumns<kLanes, kAcross, kSets, true>>();
    else
      narrow.template operator()<ThreadColumns<kLanes, kAcross, kSets, false>>();
  };
  if (cols <= DropoutLane::kShortRow)
    fitting.template operator()<DropoutLane::kShort, 8, 1>();
  else if (cols <= 256)
    fitting.template operator()<DropoutLane::kLong, 16, 1>();
  else if (cols <= 512)
    fitting.template operator()<DropoutLane::kLong, 32, 1>();
  else if (cols <= 1024)
    fitting.template operator()<DropoutLane::kLong, 32, 2>();
  else
    wide();
}

}  // namespace

template <class T>
void norm(Cuda on, const NormInput<T>& in, const NormOutput<T>& out) {
  if (in.x.size() == 0) return;
  const bool pairs = at_packs<2>(in.x.data, in.f.data, in.g, in.b, out.y.data, out.rounded.data,
                                 out.normalised.data);
  choose(
      in.x.cols, pairs,
      [&]<class S>() {
        const unsigned blocks = blocks_for(in.x.rows, kThreads / S::kAcross);
        norm_rows<S, T><<<blocks, kThreads, 0, stream(on)>>>(in, out);
      },
      [&] { norm_wide<<<blocks_for(in.x.rows, 1), kBackThreads, 0, stream(on)>>>(in, out); });
  check_launch("norm");
}

template <class T>
void norm_grad(Cuda on, const NormGrad<T>& in) {
  const int64_t rows = in.dy.rows, cols = in.dy.cols;
  if (cols == 0) return;
  constexpr int64_t kFill = 264, kLeast = 32;  // blocks that fill a GPU; minimum rows per strip
  const int64_t each = std::max(kLeast, (rows + kFill - 1) / kFill);
  const unsigned count = blocks_for(rows, each);
  const Buffer scratch = allocate(2 * count * static_cast<size_t>(cols) * sizeof(float), on);
  const Strips strips{each, {reinterpret_cast<float*>(scratch.get()), count, 2 * cols}};
  const bool pairs = at_packs<2>(in.dy.data, in.normalised.data, in.g, in.dx.data, in.df.data);
  choose(
      cols, pairs,
      [&]<class S>() { norm_back<S, T><<<count, kBackThreads, 0, stream(on)>>>(in, strips); },
      [&] {
        if (rows > 0) norm_back_wide<<<blocks_for(rows, 1), kBackThreads, 0, stream(on)>>>(in);
        sum_wide<<<dim3(blocks_for(cols, kThreads), count), kThreads, 0, stream(on)>>>(in, strips);
      });
  check_launch("norm_grad");
  if (!in.dg && !in.db) return;
  add_strips<<<blocks_for(2 * cols, kWarp), dim3(kWarp, kStripGroups), 0, stream(on)>>>(strips.sums,
                                                                                        in);
  check_launch("norm_grad");
}

template void norm(Cuda, const NormInput<float>&, const NormOutput<float>&);
template void norm(Cuda, const NormInput<bf16>&, const NormOutput<bf16>&);
template void norm_grad(Cuda, const NormGrad<float>&);
template void norm_grad(Cuda, const NormGrad<bf16>&);

}  // namespace fovea::kernel
