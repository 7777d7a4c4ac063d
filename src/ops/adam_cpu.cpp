#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "ops/adam_kernel.h"
#include "tensor/matrix.h"

namespace fovea::kernel {
namespace {

constexpr int64_t kBlock = 4096;  // numbers per block; the sums of the blocks are added in order
constexpr int64_t kLanes = 16;    // independent sums within a block, so that the loop vectorises

template <class T>
double block_squares(const T* x, int64_t n) {
  double lanes[kLanes] = {};
  const int64_t whole = n - n % kLanes;
  for (int64_t i = 0; i < whole; i += kLanes)
    for (int64_t j = 0; j < kLanes; ++j) {
      const double value = x[i + j];
      lanes[j] += value * value;
    }
  for (int64_t i = whole; i < n; ++i) {
    const double value = x[i];
    lanes[i - whole] += value * value;
  }
  double sum = 0;
  for (const double lane : lanes) sum += lane;
  return sum;
}

template <class T>
bool all_finite(const T* x, int64_t n) {
  bool finite = true;
  for (int64_t i = 0; i < n; ++i)
    finite &= std::abs(x[i]) <= std::numeric_limits<T>::max();  // false for NaN as well
  return finite;
}

template <class T>
double sum_of_squares(const T* x, int64_t n) {
  std::vector<double> partial(static_cast<size_t>((n + kBlock - 1) / kBlock));
  const int64_t blocks = static_cast<int64_t>(partial.size());
#pragma omp parallel for schedule(static) if (n > kWorthThreads)
  for (int64_t k = 0; k < blocks; ++k)
    partial[k] = block_squares(x + k * kBlock, std::min(kBlock, n - k * kBlock));
  double sum = 0;
  for (const double part : partial) sum += part;
  return sum;
}

template <class T>
void update(const AdamStep& step, double clip, const AdamBuffers<T>& b) {
  const double k = static_cast<double>(step.step);
  const T scale = static_cast<T>(clip * step.scale);
  const T beta1 = static_cast<T>(step.beta1), beta2 = static_cast<T>(step.beta2);
  const T rest1 = static_cast<T>(1 - step.beta1), rest2 = static_cast<T>(1 - step.beta2);
  const T keep = static_cast<T>(1 - step.lr * step.weight_decay);
  const T rate = static_cast<T>(step.lr / (1 - std::pow(step.beta1, k)));
  const T correct2 = static_cast<T>(1 / std::sqrt(1 - std::pow(step.beta2, k)));
  const T eps = static_cast<T>(step.eps);
  const T decay = static_cast<T>(step.ema_decay), fresh = static_cast<T>(1 - step.ema_decay);
  const T* __restrict gradient = b.gradient;
  const uint8_t* __restrict decayed = b.decayed;
  T* __restrict p = b.value, * __restrict m = b.m, * __restrict v = b.v, * __restrict ema = b.ema;
#pragma omp parallel for schedule(static) if (b.n > kWorthThreads)
  for (int64_t begin = 0; begin < b.n; begin += kBlock) {
    const int64_t end = std::min(begin + kBlock, b.n);
    const auto step_each = [&](auto kept) {
      for (int64_t i = begin; i < end; ++i) {
        const T g = scale * gradient[i];
        m[i] = beta1 * m[i] + rest1 * g;
        v[i] = beta2 * v[i] + rest2 * g * g;
        p[i] = kept(i) * p[i] - rate * m[i] / (correct2 * std::sqrt(v[i]) + eps);
      }
    };
    if (decayed)
      step_each([&](int64_t i) { return decayed[i] ? keep : T{1}; });
    else
      step_each([&](int64_t) { return keep; });
    if (ema)
      for (int64_t i = begin; i < end; ++i) ema[i] = decay * ema[i] + fresh * p[i];
  }
}

}  // namespace

template <class T>
void adam(Cpu, const AdamStep* step, const T* loss, const AdamBuffers<T>& b, T* norm) {
  const double exact = std::sqrt(sum_of_squares(b.gradient, b.n));
  *norm = static_cast<T>(exact);
  if (!std::isfinite(*norm) || (loss && !std::isfinite(*loss))) return;
  const bool clips = step->clip > 0;
  update(*step, clips ? std::min(1.0, step->clip / (step->scale * exact + 1e-6)) : 1.0, b);
}

template <class T>
int64_t first_not_finite(Cpu, const T* x, int64_t n) {
  int64_t first = n;
#pragma omp parallel for schedule(static) reduction(min : first) if (n > kWorthThreads)
  for (int64_t begin = 0; begin < n; begin += kBlock) {
    const int64_t end = std::min(begin + kBlock, n);
    if (all_finite(x + begin, end - begin)) continue;
    for (int64_t i = end - 1; i >= begin; --i)
      if (!std::isfinite(x[i])) first = std::min(first, i);
  }
  return first;
}

template void adam(Cpu, const AdamStep*, const float*, const AdamBuffers<float>&, float*);
template void adam(Cpu, const AdamStep*, const double*, const AdamBuffers<double>&, double*);
template int64_t first_not_finite(Cpu, const float*, int64_t);
template int64_t first_not_finite(Cpu, const double*, int64_t);

}  // namespace fovea::kernel
