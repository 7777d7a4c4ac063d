#include <algorithm>

#include "ops/dropout_lane.cuh"
#include "ops/norm_kernel.h"
#include "ops/warp.cuh"
#include "tensor/cuda.h"
#include "tensor/memory.h"

namespace fovea::kernel {
namespace {

constexpr int kThreads = 128, kWideThreads = 256;

// Every one of kLanes neighbouring lanes gets the sum of their values.
template <int kLanes>
__device__ float across_lanes(float value) {
#pragma unroll
  for (int step = kLanes / 2; step > 0; step /= 2) value += __shfl_xor_sync(~0u, value, step);
  return value;
}

// The row of kLanes neighbouring threads, and which of its columns a thread has: those that one
// draw of DropoutLane serves, run after run. Lanes without a row work on the last one and store
// nothing.
template <int kLanes>
struct Span {
  int64_t row;
  int lane, cols;
  bool stores;

  __device__ Span(int64_t rows, int64_t columns)
      : lane(static_cast<int>(threadIdx.x) % kLanes), cols(static_cast<int>(columns)) {
    const int64_t i = int64_t{blockIdx.x} * (kThreads / kLanes) + threadIdx.x / kLanes;
    row = std::min(i, rows - 1);
    stores = i < rows;
  }
  __device__ int column(int k) const { return k * kLanes + lane; }
  __device__ bool has(int k) const { return column(k) < cols; }
};

// Columns 8 · run + k of the span to value[k], or added: first all loads, then all stores.
template <int kLanes>
__device__ void fold_span(const Span<kLanes>& at, int run, float* to, Fold fold,
                          float (&value)[8]) {
  if (fold == Fold::add) {
#pragma unroll
    for (int k = 0; k < 8; ++k) value[k] += at.has(8 * run + k) ? to[at.column(8 * run + k)] : 0;
  }
#pragma unroll
  for (int k = 0; k < 8; ++k)
    if (at.has(8 * run + k)) to[at.column(8 * run + k)] = value[k];
}

struct NormOut {
  Matrix<float> y, normalised;
  float* inverse_deviation;
};

template <int kLanes, int kRuns>
__global__ void __launch_bounds__(kThreads) norm_rows(Norm<float> in, NormOut out) {
  constexpr int kEach = 8 * kRuns;
  const Span<kLanes> at(in.x.rows, in.x.cols);
  const float* x = in.x.row(at.row);
  float z[kEach], sum = 0, squares = 0;
#pragma unroll
  for (int k = 0; k < kEach; ++k) z[k] = at.has(k) ? x[at.column(k)] : 0;
  if (in.f.data) {
    const float* f = in.f.row(at.row);
    const DropoutLane mask(in.dropout);
#pragma unroll
    for (int run = 0; run < kRuns; ++run) {
      float keep[8] = {1, 1, 1, 1, 1, 1, 1, 1};
      if (mask.on()) mask.factors<kLanes>(at.row, run, at.lane, keep);
#pragma unroll
      for (int k = 0; k < 8; ++k)
        z[8 * run + k] += at.has(8 * run + k) ? keep[k] * f[at.column(8 * run + k)] : 0;
    }
  }
#pragma unroll
  for (int k = 0; k < kEach; ++k) sum += z[k];
  const float n = static_cast<float>(at.cols), mean = across_lanes<kLanes>(sum) / n;
#pragma unroll
  for (int k = 0; k < kEach; ++k) {
    z[k] = at.has(k) ? z[k] - mean : 0;
    squares += z[k] * z[k];
  }
  const float variance = across_lanes<kLanes>(squares) / n;
  const float scale = 1 / sqrtf(variance + static_cast<float>(in.epsilon));
  if (!at.stores) return;
  float *y = out.y.row(at.row), *kept = out.normalised.row(at.row);
#pragma unroll
  for (int k = 0; k < kEach; ++k)
    if (at.has(k)) {
      const int j = at.column(k);
      y[j] = __ldg(in.g + j) * (z[k] * scale) + __ldg(in.b + j);
      if (out.normalised.data) kept[j] = z[k] * scale;
    }
  if (out.inverse_deviation && at.lane == 0) out.inverse_deviation[at.row] = scale;
}

// body(column, factor) for the columns of a wide row that a thread of the block has.
template <class Body>
__device__ void each_wide(int64_t cols, const Dropout& dropout, Body body) {
  const int64_t row = blockIdx.x;
  const int lane = static_cast<int>(threadIdx.x) % kWarp;
  const DropoutLane mask(dropout);
  for (int64_t run = threadIdx.x / kWarp; run * 8 * kWarp < cols; run += kWideThreads / kWarp) {
    float keep[8] = {1, 1, 1, 1, 1, 1, 1, 1};
    if (mask.on()) mask.factors<DropoutLane::kLong>(row, run, lane, keep);
#pragma unroll
    for (int k = 0; k < 8; ++k) {
      const int64_t j = (run * 8 + k) * kWarp + lane;
      if (j < cols) body(j, keep[k]);
    }
  }
}

// A block per row, which is read and dropped from anew for the mean, the variance and the result.
__global__ void __launch_bounds__(kWideThreads) norm_wide(Norm<float> in, NormOut out) {
  const int64_t row = blockIdx.x;
  const float *x = in.x.row(row), *f = in.f.data ? in.f.row(row) : nullptr;
  const Dropout dropout = f ? in.dropout : Dropout{};
  const auto each = [&](auto body) {
    each_wide(in.x.cols, dropout,
              [&](int64_t j, float keep) { body(j, f ? x[j] + keep * f[j] : x[j]); });
  };
  const float n = static_cast<float>(in.x.cols);
  float sum = 0, squares = 0;
  each([&](int64_t, float z) { sum += z; });
  const float mean = across_block(sum, Sum{}, 0.0f) / n;
  each([&](int64_t, float z) { squares += (z - mean) * (z - mean); });
  const float variance = across_block(squares, Sum{}, 0.0f) / n;
  const float scale = 1 / sqrtf(variance + static_cast<float>(in.epsilon));
  each([&](int64_t j, float z) {
    const float normalised = (z - mean) * scale;
    out.y.row(row)[j] = in.g[j] * normalised + in.b[j];
    if (out.normalised.data) out.normalised.row(row)[j] = normalised;
  });
  if (out.inverse_deviation && threadIdx.x == 0) out.inverse_deviation[row] = scale;
}

template <int kLanes, int kRuns>
__global__ void __launch_bounds__(kThreads) norm_grad_rows(NormGrad<float> in) {
  constexpr int kEach = 8 * kRuns;
  const Span<kLanes> at(in.dy.rows, in.dy.cols);
  const float *dy = in.dy.row(at.row), *x = in.normalised.row(at.row);
  float d[kEach], n[kEach], sum = 0, along = 0;
#pragma unroll
  for (int k = 0; k < kEach; ++k) {
    const int j = at.column(k);
    d[k] = at.has(k) ? dy[j] * in.g[j] : 0;
    n[k] = at.has(k) ? x[j] : 0;
  }
#pragma unroll
  for (int k = 0; k < kEach; ++k) {
    sum += d[k];
    along += d[k] * n[k];
  }
  const float mean = across_lanes<kLanes>(sum) / static_cast<float>(at.cols);
  along = across_lanes<kLanes>(along) / static_cast<float>(at.cols);
  const float scale = in.inverse_deviation[at.row];
#pragma unroll
  for (int k = 0; k < kEach; ++k) d[k] = scale * (d[k] - mean - n[k] * along);
  if (!at.stores) return;
  const DropoutLane mask(in.dropout);
#pragma unroll
  for (int run = 0; run < kRuns; ++run) {
    float dx[8], df[8] = {1, 1, 1, 1, 1, 1, 1, 1};
    if (in.df.data && mask.on()) mask.factors<kLanes>(at.row, run, at.lane, df);
#pragma unroll
    for (int k = 0; k < 8; ++k) {
      dx[k] = d[8 * run + k];
      df[k] *= dx[k];
    }
    if (in.dx.data) fold_span(at, run, in.dx.row(at.row), in.fold_x, dx);
    if (in.df.data) fold_span(at, run, in.df.row(at.row), in.fold_f, df);
  }
}

__global__ void __launch_bounds__(kWideThreads) norm_grad_wide(NormGrad<float> in) {
  const int64_t row = blockIdx.x;
  const float *dy = in.dy.row(row), *x = in.normalised.row(row);
  float sum = 0, along = 0;
  each_wide(in.dy.cols, {}, [&](int64_t j, float) {
    const float d = in.g[j] * dy[j];
    sum += d;
    along += d * x[j];
  });
  const float mean = across_block(sum, Sum{}, 0.0f) / static_cast<float>(in.dy.cols);
  along = across_block(along, Sum{}, 0.0f) / static_cast<float>(in.dy.cols);
  const float scale = in.inverse_deviation[row];
  each_wide(in.dy.cols, in.df.data ? in.dropout : Dropout{}, [&](int64_t j, float keep) {
    const float dz = scale * (in.g[j] * dy[j] - mean - x[j] * along);
    if (in.dx.data) fold_into(in.dx.row(row)[j], in.fold_x, dz);
    if (in.df.data) fold_into(in.df.row(row)[j], in.fold_f, dz * keep);
  });
}

// narrow(lanes of a row, runs of a lane) as constants, or wide() for rows that no warp can hold.
template <class Narrow, class Wide>
void choose(int64_t cols, Narrow narrow, Wide wide) {
  if (cols <= DropoutLane::kShortRow)
    narrow.template operator()<DropoutLane::kShort, 1>();
  else if (cols <= 256)
    narrow.template operator()<DropoutLane::kLong, 1>();
  else if (cols <= 512)
    narrow.template operator()<DropoutLane::kLong, 2>();
  else if (cols <= 1024)
    narrow.template operator()<DropoutLane::kLong, 4>();
  else
    wide();
}

}  // namespace

template <class T>
void norm(Cuda on, const Norm<T>& in, Matrix<T> y, Matrix<T> normalised, T* inverse_deviation) {
  if (in.x.size() == 0) return;
  const NormOut out{y, normalised, inverse_deviation};
  choose(
      in.x.cols,
      [&]<int kLanes, int kRuns>() {
        const unsigned blocks = blocks_for(in.x.rows, kThreads / kLanes);
        norm_rows<kLanes, kRuns><<<blocks, kThreads, 0, stream(on)>>>(in, out);
      },
      [&] { norm_wide<<<blocks_for(in.x.rows, 1), kWideThreads, 0, stream(on)>>>(in, out); });
  check_launch("norm");
}

template <class T>
void norm_grad(Cuda on, const NormGrad<T>& in) {
  if (in.dy.size() == 0) return;
  choose(
      in.dy.cols,
      [&]<int kLanes, int kRuns>() {
        const unsigned blocks = blocks_for(in.dy.rows, kThreads / kLanes);
        norm_grad_rows<kLanes, kRuns><<<blocks, kThreads, 0, stream(on)>>>(in);
      },
      [&] { norm_grad_wide<<<blocks_for(in.dy.rows, 1), kWideThreads, 0, stream(on)>>>(in); });
  check_launch("norm_grad");
}

namespace {

constexpr int kStripRows = 8;  // that a block reads at a time

struct Product {
  const float *a, *b;
  __device__ float operator()(int64_t i) const { return a[i] * b[i]; }
};
struct Plain {
  const float* a;
  __device__ float operator()(int64_t i) const { return a[i]; }
};

struct Strips {
  int64_t rows, cols, each;  // `each` rows of a strip
};

// Row s of `sums` gets the column sums of strip s, or has them added.
template <class Value>
__global__ void __launch_bounds__(kWarp* kStripRows)
    sum_columns(Value value, Strips of, Matrix<float> sums, Fold fold) {
  __shared__ float part[kStripRows][kWarp];
  const int64_t j = int64_t{blockIdx.x} * kWarp + threadIdx.x;
  const int64_t end = std::min(of.rows, (blockIdx.y + 1) * of.each);
  float sum = 0;
  if (j < of.cols) {
#pragma unroll 8
    for (int64_t i = blockIdx.y * of.each + threadIdx.y; i < end; i += kStripRows)
      sum += value(i * of.cols + j);
  }
  part[threadIdx.y][threadIdx.x] = sum;
  __syncthreads();
  if (threadIdx.y > 0 || j >= of.cols) return;
#pragma unroll
  for (int k = 1; k < kStripRows; ++k) sum += part[k][threadIdx.x];
  fold_into(sums.row(blockIdx.y)[j], fold, sum);
}

}  // namespace

template <class T>
void norm_gain_grad(Cuda on, Matrix<const T> normalised, Matrix<const T> dy, T* dg, Fold fold) {
  const int64_t rows = dy.rows, cols = dy.cols;
  if (cols == 0) return;
  constexpr int64_t kFill = 1056,
                    kLeast = 8 * kStripRows;  // blocks that fill a GPU; rows of a strip
  const unsigned across = blocks_for(cols, kWarp);
  const int64_t wanted = (kFill + across - 1) / across;
  const int64_t strip = std::max(kLeast, (rows + wanted - 1) / wanted);
  const unsigned strips = blocks_for(rows, strip);
  const Product product{normalised.data, dy.data};
  const Matrix<float> to{dg, 1, cols};
  const dim3 threads(kWarp, kStripRows);
  if (strips == 1) {
    sum_columns<<<across, threads, 0, stream(on)>>>(product, Strips{rows, cols, strip}, to, fold);
    return check_launch("norm_gain_grad");
  }
  const Buffer scratch = allocate(strips * static_cast<size_t>(cols) * sizeof(float), on);
  const Matrix<float> parts{reinterpret_cast<float*>(scratch.get()), strips, cols};
  sum_columns<<<dim3(across, strips), threads, 0, stream(on)>>>(product, Strips{rows, cols, strip},
                                                                parts, Fold::set);
  check_launch("norm_gain_grad");
  sum_columns<<<across, threads, 0, stream(on)>>>(Plain{parts.data}, Strips{strips, cols, strips},
                                                  to, fold);
  check_launch("norm_gain_grad");
}

template void norm(Cuda, const Norm<float>&, Matrix<float>, Matrix<float>, float*);
template void norm_grad(Cuda, const NormGrad<float>&);
template void norm_gain_grad(Cuda, Matrix<const float>, Matrix<const float>, float*, Fold);

}  // namespace fovea::kernel
