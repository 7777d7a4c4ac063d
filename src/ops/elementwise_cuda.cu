#include <algorithm>

#include "ops/dropout_lane.cuh"
#include "ops/elementwise_functions.h"
#include "ops/elementwise_kernel.h"
#include "tensor/cuda.h"
#include "tensor/memory.h"
#include "tensor/pack.cuh"
#include "tensor/warp.cuh"

namespace fovea::kernel {
namespace {

constexpr int kThreads = 128;

// The output y. If `fold` is OutputMode::add, kernels add to y, otherwise they set it.
template <class T>
struct Target {
  Matrix<T> y;
  OutputMode fold;
};

// Returns a pack (kWide adjacent numbers) whose entry i is f of the entries i of the given packs.
template <int kWide, class F, class... Packs>
__device__ Pack<kWide> map_entries(F f, const Pack<kWide>& first, const Packs&... others) {
  Pack<kWide> out;
#pragma unroll
  for (int w = 0; w < kWide; ++w) out.at[w] = f(first.at[w], others.at[w]...);
  return out;
}

// y = value(index, factors) or y += value(index, factors) for every element. kLanes / kWide threads
// process a run of 8 · kLanes columns; each thread has 8 packs of kWide adjacent columns. With
// kWide = 2, rows must be whole runs. With kWide = 1, a thread past the end of a row computes the
// last column again and does not store it. So no load waits for a branch, and all loads of a thread
// are in flight together.
template <int kLanes, int kWide, class T, class Value>
__global__ void __launch_bounds__(kThreads)
    fold_runs(Target<T> to, Dropout dropout, uint32_t runs_of_row, Value value) {
  constexpr int kRun = 8 * kLanes, kAcross = kLanes / kWide;
  const uint32_t number = blockIdx.x * (kThreads / kAcross) + threadIdx.x / kAcross;
  const uint32_t row = number / runs_of_row, run = number % runs_of_row;
  if (row >= to.y.rows) return;
  const int lane = static_cast<int>(threadIdx.x) % kAcross * kWide;
  const int64_t column = int64_t{run} * kRun, first = row * to.y.cols + column;
  const int left = static_cast<int>(std::min<int64_t>(kRun, to.y.cols - column));
  const auto place = [&](int k) {
    return first + (kWide > 1 ? k * kLanes + lane : std::min(k * kLanes + lane, left - 1));
  };

  Pack<kWide> keep[8], out[8];
#pragma unroll
  for (int w = 0; w < kWide; ++w) {
    float factors[8] = {1, 1, 1, 1, 1, 1, 1, 1};
    if (dropout.rate > 0) DropoutLane(dropout).factors<kLanes>(row, run, lane + w, factors);
#pragma unroll
    for (int k = 0; k < 8; ++k) keep[k].at[w] = factors[k];
  }
#pragma unroll
  for (int k = 0; k < 8; ++k) out[k] = value(place(k), keep[k]);
  if (to.fold == OutputMode::add) {
#pragma unroll
    for (int k = 0; k < 8; ++k)
      out[k] = map_entries([](float a, float b) { return a + b; }, out[k],
                           load<kWide>(to.y.data + place(k)));
  }
#pragma unroll
  for (int k = 0; k < 8; ++k)
    if (kWide > 1 || k * kLanes + lane < left) store(to.y.data + place(k), out[k]);
}

template <int kLanes, int kWide, class T, class Value>
void launch_runs(Cuda on, const Target<T>& to, const Dropout& dropout, Value value) {
  const int64_t runs = (to.y.cols + 8 * kLanes - 1) / (8 * kLanes);
  const unsigned blocks = blocks_for(to.y.rows * runs, kThreads / (kLanes / kWide));
  fold_runs<kLanes, kWide>
      <<<blocks, kThreads, 0, stream(on)>>>(to, dropout, static_cast<uint32_t>(runs), value);
  check_launch(Value::kName);
}

// Computes all elements of `to`. If there is no dropout, a value does not depend on its row, so all
// elements are treated as one row.
template <class T, class Value>
void fold_all(Cuda on, Target<T> to, const Dropout& dropout, Value value) {
  constexpr int kShort = DropoutLane::kShort, kLong = DropoutLane::kLong;
  if (to.y.size() == 0) return;
  if (!dropout.on()) to.y = {to.y.data, 1, to.y.size()};
  const bool pairs = value.in_pairs() && at_packs<2>(to.y.data);
  if (dropout.on() && to.y.cols <= DropoutLane::kShortRow)
    launch_runs<kShort, 1>(on, to, dropout, value);
  else if (pairs && to.y.cols % (8 * kLong) == 0)
    launch_runs<kLong, 2>(on, to, dropout, value);
  else
    launch_runs<kLong, 1>(on, to, dropout, value);
}

template <class F, class T>
struct Apply {
  static constexpr const char* kName = "apply";
  const T* x;
  bool in_pairs() const { return at_packs<2>(x); }
  template <int kWide>
  __device__ Pack<kWide> operator()(int64_t i, const Pack<kWide>& keep) const {
    return map_entries([](float a, float k) { return F::f(a) * k; }, load<kWide>(x + i), keep);
  }
};
template <class F, class T>
struct ApplyGrad {
  static constexpr const char* kName = "apply_grad";
  const T *x, *dy;
  bool in_pairs() const { return at_packs<2>(x, dy); }
  template <int kWide>
  __device__ Pack<kWide> operator()(int64_t i, const Pack<kWide>& keep) const {
    return map_entries([](float a, float d, float k) { return F::df(a) * d * k; },
                       load<kWide>(x + i), load<kWide>(dy + i), keep);
  }
};
template <class F, class T>
struct Gate {
  static constexpr const char* kName = "gate";
  const T *x, *z;
  bool in_pairs() const { return at_packs<2>(x, z); }
  template <int kWide>
  __device__ Pack<kWide> operator()(int64_t i, const Pack<kWide>& keep) const {
    return map_entries([](float a, float b, float k) { return F::f(a) * b * k; },
                       load<kWide>(x + i), load<kWide>(z + i), keep);
  }
};
template <class F, class T>
struct GateGradient {
  static constexpr const char* kName = "gate_grad";
  const T *x, *z, *dy;
  bool in_pairs() const { return at_packs<2>(x, z, dy); }
  template <int kWide>
  __device__ Pack<kWide> operator()(int64_t i, const Pack<kWide>& keep) const {
    return map_entries([](float a, float b, float d, float k) { return F::df(a) * b * d * k; },
                       load<kWide>(x + i), load<kWide>(z + i), load<kWide>(dy + i), keep);
  }
};
template <class T>
struct ReluGrad {
  static constexpr const char* kName = "relu_grad";
  const T *y, *dy;
  float scale;  // factor of kept elements; dropped elements have y = 0
  bool in_pairs() const { return at_packs<2>(y, dy); }
  template <int kWide>
  __device__ Pack<kWide> operator()(int64_t i, const Pack<kWide>&) const {
    const float by = scale;
    return map_entries([=](float value, float d) { return value > 0 ? d * by : 0.0f; },
                       load<kWide>(y + i), load<kWide>(dy + i));
  }
};
template <class T>
struct Residual {
  static constexpr const char* kName = "residual";
  const float* x;
  const T* f;
  bool in_pairs() const { return at_packs<2>(x, f); }
  template <int kWide>
  __device__ Pack<kWide> operator()(int64_t i, const Pack<kWide>& keep) const {
    return map_entries([](float a, float b, float k) { return a + b * k; }, load<kWide>(x + i),
                       load<kWide>(f + i), keep);
  }
};
struct DroppedInput {
  static constexpr const char* kName = "drop";
  const float* x;
  bool in_pairs() const { return at_packs<2>(x); }
  template <int kWide>
  __device__ Pack<kWide> operator()(int64_t i, const Pack<kWide>& keep) const {
    return map_entries([](float a, float k) { return a * k; }, load<kWide>(x + i), keep);
  }
};
struct ScaledInput {
  static constexpr const char* kName = "scale";
  const float *x, *by;  // by: the address of a factor in device memory
  float factor;
  bool in_pairs() const { return at_packs<2>(x); }
  template <int kWide>
  __device__ Pack<kWide> operator()(int64_t i, const Pack<kWide>&) const {
    const float times = by ? *by : factor;
    return map_entries([=](float a) { return a * times; }, load<kWide>(x + i));
  }
};
struct Constant {
  static constexpr const char* kName = "add_constant";
  const float* value;
  bool in_pairs() const { return true; }
  template <int kWide>
  __device__ Pack<kWide> operator()(int64_t, const Pack<kWide>& keep) const {
    const float same = *value;
    return map_entries([=](float) { return same; }, keep);
  }
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
    case Function::gelu_tanh:
      return body(function::GeluTanh{});
    case Function::silu:
      return body(function::Silu{});
    case Function::exp:
      return body(function::Exp{});
  }
}

}  // namespace

template <class T>
void apply(Cuda on, Function f, Matrix<const T> x, const Dropout& dropout, Matrix<T> y) {
  choose(f, [&]<class F>(F) {
    fold_all(on, Target<T>{y, OutputMode::set}, dropout, Apply<F, T>{x.data});
  });
}

template <class T>
void apply_grad(Cuda on, Function f, Matrix<const T> x, Matrix<const T> dy, const Dropout& dropout,
                Matrix<T> dx, OutputMode fold) {
  choose(f, [&]<class F>(F) {
    fold_all(on, Target<T>{dx, fold}, dropout, ApplyGrad<F, T>{x.data, dy.data});
  });
}

template <class T>
void gate(Cuda on, Function f, Matrix<const T> x, Matrix<const T> z, const Dropout& dropout,
          Matrix<T> y, OutputMode fold) {
  choose(f, [&]<class F>(F) {
    fold_all(on, Target<T>{y, fold}, dropout, Gate<F, T>{x.data, z.data});
  });
}

template <class T>
void gate_grad(Cuda on, Function f, const GateGrad<T>& in, const Dropout& dropout) {
  choose(f, [&]<class F>(F) {
    fold_all(on, Target<T>{in.dx, in.fold}, dropout,
             GateGradient<F, T>{in.x.data, in.z.data, in.dy.data});
  });
}

template <class T>
void relu_grad(Cuda on, Matrix<const T> y, Matrix<const T> dy, const Dropout& dropout, Matrix<T> dx,
               OutputMode fold) {
  const float scale = dropout.on() ? DropoutLane(dropout).scale() : 1;
  fold_all(on, Target<T>{dx, fold}, {}, ReluGrad<T>{y.data, dy.data, scale});
}

template <class T>
void residual(Cuda on, Matrix<const SumType<T>> x, Matrix<const T> f, const Dropout& dropout,
              Matrix<SumType<T>> y) {
  fold_all(on, Target<SumType<T>>{y, OutputMode::set}, dropout, Residual<T>{x.data, f.data});
}

template <class T>
void drop(Cuda on, Matrix<const SumType<T>> x, const Dropout& dropout, Matrix<T> y,
          OutputMode fold) {
  fold_all(on, Target<T>{y, fold}, dropout, DroppedInput{x.data});
}

template <class T>
void scale(Cuda on, Matrix<const T> x, double factor, Matrix<T> y, OutputMode fold) {
  fold_all(on, Target<T>{y, fold}, {}, ScaledInput{x.data, nullptr, static_cast<float>(factor)});
}

template <class T>
void scale_by(Cuda on, Matrix<const T> x, const T* factor, Matrix<T> y, OutputMode fold) {
  fold_all(on, Target<T>{y, fold}, {}, ScaledInput{x.data, factor, 1});
}

template <class T>
void add_constant(Cuda on, const T* value, Matrix<T> dx, OutputMode fold) {
  fold_all(on, Target<T>{dx, fold}, {}, Constant{value});
}

namespace {

constexpr int kSumThreads = 512, kSumEach = 8, kMostParts = 1024;

// Each block stores the sum of its numbers. As on the CPU, the sum is in double.
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
  total = across_block(total, WarpSum{}, 0.0);
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

#define FOVEA_INSTANTIATE(T)                                                                      \
  template void apply(Cuda, Function, Matrix<const T>, const Dropout&, Matrix<T>);                \
  template void apply_grad(Cuda, Function, Matrix<const T>, Matrix<const T>, const Dropout&,      \
                           Matrix<T>, OutputMode);                                                \
  template void gate(Cuda, Function, Matrix<const T>, Matrix<const T>, const Dropout&, Matrix<T>, \
                     OutputMode);                                                                 \
  template void gate_grad(Cuda, Function, const GateGrad<T>&, const Dropout&);                    \
  template void relu_grad(Cuda, Matrix<const T>, Matrix<const T>, const Dropout&, Matrix<T>,      \
                          OutputMode);                                                            \
  template void residual(Cuda, Matrix<const float>, Matrix<const T>, const Dropout&,              \
                         Matrix<float>);                                                          \
  template void drop(Cuda, Matrix<const float>, const Dropout&, Matrix<T>, OutputMode);
FOVEA_INSTANTIATE(float)
FOVEA_INSTANTIATE(bf16)
#undef FOVEA_INSTANTIATE
template void scale(Cuda, Matrix<const float>, double, Matrix<float>, OutputMode);
template void scale_by(Cuda, Matrix<const float>, const float*, Matrix<float>, OutputMode);
template void add_constant(Cuda, const float*, Matrix<float>, OutputMode);
template void sum(Cuda, Matrix<const float>, float*);

}  // namespace fovea::kernel
