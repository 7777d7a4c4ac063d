#include <algorithm>

#include "ops/dropout_lane.cuh"
#include "ops/elementwise_functions.h"
#include "ops/elementwise_kernel.h"
#include "ops/warp.cuh"
#include "tensor/cuda.h"
#include "tensor/memory.h"

namespace fovea::kernel {
namespace {

constexpr int kThreads = 128;

struct Target {
  Matrix<float> y;
  Fold fold;
};

// y = value(index, factor) for every element, or added. kLanes threads take a run of 8 · kLanes
// columns. What is behind the end of a row is computed of its last column and not stored: so no
// load waits for a branch, and all those of a thread are on their way together.
template <int kLanes, class Value>
__global__ void __launch_bounds__(kThreads)
    fold_runs(Target to, Dropout dropout, uint32_t runs_of_row, Value value) {
  constexpr int kRun = 8 * kLanes;
  const uint32_t number = blockIdx.x * (kThreads / kLanes) + threadIdx.x / kLanes;
  const uint32_t row = number / runs_of_row, run = number % runs_of_row;
  if (row >= to.y.rows) return;
  const int lane = static_cast<int>(threadIdx.x) % kLanes;
  const int64_t column = int64_t{run} * kRun, first = row * to.y.cols + column;
  const int left = static_cast<int>(std::min<int64_t>(kRun, to.y.cols - column));

  float keep[8] = {1, 1, 1, 1, 1, 1, 1, 1}, out[8];
  if (dropout.rate > 0) DropoutLane(dropout).factors<kLanes>(row, run, lane, keep);
#pragma unroll
  for (int k = 0; k < 8; ++k)
    out[k] = value(first + std::min(k * kLanes + lane, left - 1), keep[k]);
  if (to.fold == Fold::add) {
#pragma unroll
    for (int k = 0; k < 8; ++k) out[k] += to.y.data[first + std::min(k * kLanes + lane, left - 1)];
  }
#pragma unroll
  for (int k = 0; k < 8; ++k)
    if (k * kLanes + lane < left) to.y.data[first + k * kLanes + lane] = out[k];
}

template <int kLanes, class Value>
void launch_runs(Cuda on, const Target& to, const Dropout& dropout, Value value) {
  const int64_t runs = (to.y.cols + 8 * kLanes - 1) / (8 * kLanes);
  const unsigned blocks = blocks_for(to.y.rows * runs, kThreads / kLanes);
  fold_runs<kLanes>
      <<<blocks, kThreads, 0, stream(on)>>>(to, dropout, static_cast<uint32_t>(runs), value);
  check_launch(Value::kName);
}

// Where nothing is dropped, rows do not matter and all elements are one.
template <class Value>
void fold_all(Cuda on, Target to, const Dropout& dropout, Value value) {
  if (to.y.size() == 0) return;
  if (!dropout.on()) to.y = {to.y.data, 1, to.y.size()};
  if (dropout.on() && to.y.cols <= DropoutLane::kShortRow)
    launch_runs<DropoutLane::kShort>(on, to, dropout, value);
  else
    launch_runs<DropoutLane::kLong>(on, to, dropout, value);
}

template <class F>
struct Apply {
  static constexpr const char* kName = "apply";
  const float* x;
  __device__ float operator()(int64_t i, float keep) const { return F::f(x[i]) * keep; }
};
template <class F>
struct ApplyGrad {
  static constexpr const char* kName = "apply_grad";
  const float *x, *dy;
  __device__ float operator()(int64_t i, float keep) const { return F::df(x[i]) * dy[i] * keep; }
};
struct ReluGrad {
  static constexpr const char* kName = "relu_grad";
  const float *y, *dy;
  __device__ float operator()(int64_t i, float keep) const {
    const float value = y[i], d = dy[i];
    return value > 0 ? d * keep : 0.0f;
  }
};
struct Residual {
  static constexpr const char* kName = "residual";
  const float *x, *f;
  __device__ float operator()(int64_t i, float keep) const { return x[i] + f[i] * keep; }
};
struct Dropped {
  static constexpr const char* kName = "dropped";
  const float* f;
  __device__ float operator()(int64_t i, float keep) const { return f[i] * keep; }
};
struct Scaled {
  static constexpr const char* kName = "scale";
  const float* x;
  float factor;
  __device__ float operator()(int64_t i, float) const { return x[i] * factor; }
};
struct ScaledBy {
  static constexpr const char* kName = "scale_by";
  const float *x, *factor;
  __device__ float operator()(int64_t i, float) const { return x[i] * *factor; }
};
struct Constant {
  static constexpr const char* kName = "add_constant";
  const float* value;
  __device__ float operator()(int64_t, float) const { return *value; }
};

template <class Body>
void choose(Function f, Body body) {
  switch (f) {
    case Function::tanh:
      return body(function::Tanh{});
    case Function::sigmoid:
      return body(function::Sigmoid{});
    case Function::relu:
      return body(function::Relu{});
    case Function::gelu:
      return body(function::Gelu{});
    case Function::silu:
      return body(function::Silu{});
    case Function::exp:
      return body(function::Exp{});
  }
}

}  // namespace

template <class T>
void apply(Cuda on, Function f, Matrix<const T> x, const Dropout& dropout, Matrix<T> y) {
  choose(f, [&]<class F>(F) { fold_all(on, {y, Fold::set}, dropout, Apply<F>{x.data}); });
}

template <class T>
void apply_grad(Cuda on, Function f, Matrix<const T> x, Matrix<const T> dy, const Dropout& dropout,
                Matrix<T> dx, Fold fold) {
  choose(f, [&]<class F>(F) { fold_all(on, {dx, fold}, dropout, ApplyGrad<F>{x.data, dy.data}); });
}

template <class T>
void relu_grad(Cuda on, Matrix<const T> y, Matrix<const T> dy, const Dropout& dropout, Matrix<T> dx,
               Fold fold) {
  fold_all(on, {dx, fold}, dropout, ReluGrad{y.data, dy.data});
}

template <class T>
void residual(Cuda on, Matrix<const T> x, Matrix<const T> f, const Dropout& dropout, Matrix<T> y,
              Fold fold) {
  if (x.data)
    fold_all(on, {y, fold}, dropout, Residual{x.data, f.data});
  else
    fold_all(on, {y, fold}, dropout, Dropped{f.data});
}

template <class T>
void scale(Cuda on, Matrix<const T> x, double factor, Matrix<T> y, Fold fold) {
  fold_all(on, {y, fold}, {}, Scaled{x.data, static_cast<float>(factor)});
}

template <class T>
void scale_by(Cuda on, Matrix<const T> x, const T* factor, Matrix<T> y, Fold fold) {
  fold_all(on, {y, fold}, {}, ScaledBy{x.data, factor});
}

template <class T>
void add_constant(Cuda on, const T* value, Matrix<T> dx, Fold fold) {
  fold_all(on, {dx, fold}, {}, Constant{value});
}

namespace {

constexpr int kSumThreads = 512, kSumEach = 8, kMostParts = 1024;

// One part per block; as on the CPU, the sum is one of doubles.
template <class From, class To>
__global__ void __launch_bounds__(kSumThreads) sum_parts(const From* x, int64_t n, To* y) {
  constexpr int64_t kTurn = kSumThreads * kSumEach;
  double total = 0;
  for (int64_t first = blockIdx.x * kTurn; first < n; first += gridDim.x * kTurn) {
    From value[kSumEach];
#pragma unroll
    for (int k = 0; k < kSumEach; ++k) {
      const int64_t i = first + k * kSumThreads + threadIdx.x;
      value[k] = i < n ? x[i] : From{0};
    }
#pragma unroll
    for (int k = 0; k < kSumEach; ++k) total += static_cast<double>(value[k]);
  }
  total = across_block(total, Sum{}, 0.0);
  if (threadIdx.x == 0) y[blockIdx.x] = static_cast<To>(total);
}

}  // namespace

template <class T>
void sum(Cuda on, Matrix<const T> x, T* y) {
  const unsigned parts =
      std::min<unsigned>(blocks_for(x.size(), kSumThreads * kSumEach), kMostParts);
  if (parts == 1) {
    sum_parts<<<1, kSumThreads, 0, stream(on)>>>(x.data, x.size(), y);
  } else {
    const Buffer scratch = allocate(parts * sizeof(double), on);
    double* part = reinterpret_cast<double*>(scratch.get());
    sum_parts<<<parts, kSumThreads, 0, stream(on)>>>(x.data, x.size(), part);
    check_launch("sum");
    sum_parts<<<1, kSumThreads, 0, stream(on)>>>(part, int64_t{parts}, y);
  }
  check_launch("sum");
}

template void apply(Cuda, Function, Matrix<const float>, const Dropout&, Matrix<float>);
template void apply_grad(Cuda, Function, Matrix<const float>, Matrix<const float>, const Dropout&,
                         Matrix<float>, Fold);
template void relu_grad(Cuda, Matrix<const float>, Matrix<const float>, const Dropout&,
                        Matrix<float>, Fold);
template void residual(Cuda, Matrix<const float>, Matrix<const float>, const Dropout&,
                       Matrix<float>, Fold);
template void scale(Cuda, Matrix<const float>, double, Matrix<float>, Fold);
template void scale_by(Cuda, Matrix<const float>, const float*, Matrix<float>, Fold);
template void add_constant(Cuda, const float*, Matrix<float>, Fold);
template void sum(Cuda, Matrix<const float>, float*);

}  // namespace fovea::kernel
