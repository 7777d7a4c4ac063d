#include <cassert>

#include "ops/adam_kernel.h"
#include "tensor/cuda.h"
#include "tensor/memory.h"
#include "tensor/pack.cuh"
#include "tensor/warp.cuh"

namespace fovea::kernel {
namespace {

constexpr int kThreads = 256;
constexpr int64_t kMostBlocks = 1024;  // maximum number of blocks of kernels with grid-stride loops

// The factors of one Adam step. One thread computes them in double for all other threads.
struct AdamFactors {
  float scale, beta1, beta2, rest1, rest2, keep, rate, correct2, eps, decay, fresh;
  bool applied;  // false: the step changes nothing

  __device__ static AdamFactors of(const AdamStep& step, double norm, bool applied) {
    const auto k = static_cast<double>(step.step);
    const double clip = step.clip > 0 ? fmin(1.0, step.clip / (step.scale * norm + 1e-6)) : 1.0;
    return {.scale = static_cast<float>(clip * step.scale),
            .beta1 = static_cast<float>(step.beta1),
            .beta2 = static_cast<float>(step.beta2),
            .rest1 = static_cast<float>(1 - step.beta1),
            .rest2 = static_cast<float>(1 - step.beta2),
            .keep = static_cast<float>(1 - step.lr * step.weight_decay),
            .rate = static_cast<float>(step.lr / (1 - pow(step.beta1, k))),
            .correct2 = static_cast<float>(1 / sqrt(1 - pow(step.beta2, k))),
            .eps = static_cast<float>(step.eps),
            .decay = static_cast<float>(step.ema_decay),
            .fresh = static_cast<float>(1 - step.ema_decay),
            .applied = applied};
  }
};

// Updates the numbers at … at + kWide − 1 of each array of `b`.
template <int kWide>
__device__ void update(const AdamFactors& by, const AdamBuffers<float>& b, int64_t at) {
  auto place = [at](float* of) { return reinterpret_cast<Pack<kWide>*>(of + at); };
  const Pack<kWide> gradient = load<kWide>(b.gradient + at);
  Pack<kWide> p = *place(b.value), m = *place(b.m), v = *place(b.v), ema{};
  if (b.ema) ema = *place(b.ema);
#pragma unroll
  for (int i = 0; i < kWide; ++i) {
    const float g = by.scale * gradient.at[i];
    m.at[i] = by.beta1 * m.at[i] + by.rest1 * g;
    v.at[i] = by.beta2 * v.at[i] + by.rest2 * g * g;
    const float keep = b.decayed && b.decayed[at + i] == 0 ? 1.0f : by.keep;
    p.at[i] = keep * p.at[i] - by.rate * m.at[i] / (by.correct2 * sqrtf(v.at[i]) + by.eps);
    ema.at[i] = by.decay * ema.at[i] + by.fresh * p.at[i];
  }
  *place(b.value) = p;
  *place(b.m) = m;
  *place(b.v) = v;
  if (b.ema) *place(b.ema) = ema;
}

// Updates numbers 0 … wide − 1 in groups of four per thread, and each later number in its own
// thread.
__global__ void update_each(const AdamFactors* factors, AdamBuffers<float> b, int64_t wide) {
  const AdamFactors by = *factors;
  if (!by.applied) return;
  const int64_t thread = int64_t{blockIdx.x} * kThreads + threadIdx.x;
  if (thread < wide / 4) return update<4>(by, b, 4 * thread);
  const int64_t at = wide + thread - wide / 4;
  if (at < b.n) update<1>(by, b, at);
}

__global__ void sum_squares(const float* x, int64_t n, int64_t wide, double* parts) {
  const int64_t thread = int64_t{blockIdx.x} * kThreads + threadIdx.x;
  const int64_t threads = int64_t{gridDim.x} * kThreads;
  double sum = 0;
  auto add = [&sum](float value) {
    sum += static_cast<double>(value) * static_cast<double>(value);
  };
#pragma unroll 4
  for (int64_t at = 4 * thread; at < wide; at += 4 * threads) {
    const Pack<4> values = load<4>(x + at);
    for (const float value : values.at) add(value);
  }
  for (int64_t at = wide + thread; at < n; at += threads) add(x[at]);
  sum = across_block(sum, WarpSum{}, 0.0);
  if (threadIdx.x == 0) parts[blockIdx.x] = sum;
}

__global__ void find_factors(const double* parts, int count, const AdamStep* step,
                             const float* loss, float* norm, AdamFactors* factors) {
  double sum = 0;
  for (int i = static_cast<int>(threadIdx.x); i < count; i += kThreads) sum += parts[i];
  sum = across_block(sum, WarpSum{}, 0.0);
  if (threadIdx.x > 0) return;
  const double exact = sqrt(sum);
  *norm = static_cast<float>(exact);
  const bool finite = isfinite(*norm) && (!loss || isfinite(*loss));
  *factors = AdamFactors::of(*step, exact, finite);
}

// The index of the first number that is not finite. atomicMin on integers is deterministic: the
// minimum does not depend on the order of the threads.
__global__ void find_not_finite(const float* x, int64_t n, unsigned long long* first) {
  const int64_t threads = int64_t{gridDim.x} * kThreads;
  for (int64_t at = int64_t{blockIdx.x} * kThreads + threadIdx.x; at < n; at += threads)
    if (!isfinite(x[at])) {
      atomicMin(first, static_cast<unsigned long long>(at));
      return;
    }
}

unsigned blocks_in_strides(int64_t threads) {
  return std::min(blocks_for(threads, kThreads), static_cast<unsigned>(kMostBlocks));
}

template <class Value>
Value downloaded(const Value* from, Cuda on) {
  Value value;
  download(reinterpret_cast<const std::byte*>(from), reinterpret_cast<std::byte*>(&value),
           sizeof(Value), on);
  return value;
}

}  // namespace

template <class T>
void adam(Cuda on, const AdamStep* step, const T* loss, const AdamBuffers<T>& b, T* norm) {
  assert(b.n > 0);
  const int64_t wide = at_fours(b.gradient, b.value, b.m, b.v, b.ema) ? b.n / 4 * 4 : 0;
  const int64_t threads = wide / 4 + (b.n - wide);
  const unsigned blocks = blocks_in_strides(threads);
  const Buffer scratch = allocate(sizeof(AdamFactors) + blocks * sizeof(double), on);
  double* const parts = reinterpret_cast<double*>(scratch.get());
  AdamFactors* const factors = reinterpret_cast<AdamFactors*>(parts + blocks);
  sum_squares<<<blocks, kThreads, 0, stream(on)>>>(b.gradient, b.n, wide, parts);
  check_launch("sum_squares");
  find_factors<<<1, kThreads, 0, stream(on)>>>(parts, static_cast<int>(blocks), step, loss, norm,
                                               factors);
  check_launch("adam factors");
  update_each<<<blocks_for(threads, kThreads), kThreads, 0, stream(on)>>>(factors, b, wide);
  check_launch("adam");
}

template <class T>
int64_t first_not_finite(Cuda on, const T* x, int64_t n) {
  using Place = unsigned long long;
  const Buffer scratch = allocate(sizeof(Place), on);
  Place* first = reinterpret_cast<Place*>(scratch.get());
  check_cuda(cudaMemsetAsync(first, 0xFF, sizeof(Place), stream(on)), "first_not_finite");
  find_not_finite<<<blocks_in_strides(n), kThreads, 0, stream(on)>>>(x, n, first);
  check_launch("first_not_finite");
  return static_cast<int64_t>(std::min(downloaded(first, on), static_cast<Place>(n)));
}

template void adam(Cuda, const AdamStep*, const float*, const AdamBuffers<float>&, float*);
template int64_t first_not_finite(Cuda, const float*, int64_t);

}  // namespace fovea::kernel
