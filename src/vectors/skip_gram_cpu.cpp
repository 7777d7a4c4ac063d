#include <array>
#include <bit>
#include <cmath>
#include <vector>

#include "gemm/small_gemm.h"
#include "ops/vector_math.h"
#include "vectors/skip_gram_kernel.h"

namespace fovea::kernel {
namespace {

using V = SimdVector<float>::type;
constexpr int64_t kStep = kLanes<float>;
constexpr size_t kPrefetchDistance =
    4;                        // number of pairs between the prefetch of a row and its use
constexpr int kFactors = 32;  // number of probabilities whose product has one logarithm
constexpr double kMinProbability =
    0x1p-30;  // lower bound of a probability, so that products of 32 do not underflow
constexpr size_t kMinSharedPairs = 2000;  // with fewer pairs, one thread is faster than several

template <int64_t kCount>
float sum_of(const float* lanes) {
  if constexpr (kCount == 1)
    return *lanes;
  else
    return sum_of<kCount / 2>(lanes) + sum_of<kCount / 2>(lanes + kCount / 2);
}

float dot(const float* a, const float* b, int64_t n) {
  V even{}, odd{};
  int64_t j = 0;
  for (; j + 2 * kStep <= n; j += 2 * kStep) {
    even += *reinterpret_cast<const V*>(a + j) * *reinterpret_cast<const V*>(b + j);
    odd += *reinterpret_cast<const V*>(a + j + kStep) * *reinterpret_cast<const V*>(b + j + kStep);
  }
  if (j < n) even += *reinterpret_cast<const V*>(a + j) * *reinterpret_cast<const V*>(b + j);
  even += odd;
  alignas(kVectorBytes) float lanes[kStep];
  *reinterpret_cast<V*>(lanes) = even;
  return sum_of<kStep>(lanes);
}

void prefetch(const float* row, int64_t n) {
  for (int64_t j = 0; j < n; j += 16) __builtin_prefetch(row + j, 1);
}

// The sum −Σ log p, computed with one logarithm per product of kFactors probabilities.
class LogLoss {
 public:
  void add(float p) {
    product_ *= p > kMinProbability || std::isnan(p) ? static_cast<double>(p) : kMinProbability;
    if (++factors_ < kFactors) return;
    sum_ -= std::log(product_);
    product_ = 1, factors_ = 0;
  }
  double value() const { return sum_ - std::log(product_); }

 private:
  double sum_ = 0, product_ = 1;
  int factors_ = 0;
};

void learn(const SkipGramTables& t, const SkipGramRun& run, LogLoss& loss) {
  const std::span<const SkipGramPair> pairs = run.pairs;
  const int64_t n = t.stride;
  const auto row_of = [](int32_t output) { return output < 0 ? ~output : output; };
  for (size_t k = 0; k < pairs.size(); ++k) {
    if (k + kPrefetchDistance < pairs.size()) {
      prefetch(t.input + pairs[k + kPrefetchDistance].input * n, n);
      prefetch(t.output + row_of(pairs[k + kPrefetchDistance].output) * n, n);
    }
    float* __restrict v = t.input + pairs[k].input * n;
    float* __restrict u = t.output + row_of(pairs[k].output) * n;
    const float s = pairs[k].output < 0 ? -1.0f : 1.0f;
    const float p = math::sigmoid(s * dot(v, u, n));  // σ(s v′ᵀ v)
    loss.add(p);
    const float g = run.rate * s * (1.0f - p);  // −∂/∂x (−log σ(s x)) = s (1 − σ(s x))
    for (int64_t j = 0; j < n; j += kStep) {
      V& a = *reinterpret_cast<V*>(v + j);
      V& b = *reinterpret_cast<V*>(u + j);
      const V before = a;
      a += g * b;       // v  ← v  + η s (1 − p) v′
      b += g * before;  // v′ ← v′ + η s (1 − p) v
    }
  }
}

}  // namespace

double skip_gram(Cpu, const SkipGramTables& tables, std::span<const SkipGramBlock> blocks) {
  const int64_t count = static_cast<int64_t>(blocks.size());
  std::vector<double> losses(blocks.size());
  size_t pairs = 0;
  for (const SkipGramBlock& block : blocks)
    for (const SkipGramRun& run : block.runs) pairs += run.pairs.size();
#pragma omp parallel for schedule(dynamic, 1) if (pairs > kMinSharedPairs)
  for (int64_t i = 0; i < count; ++i) {
    LogLoss loss;
    for (const SkipGramRun& run : blocks[i].runs) learn(tables, run, loss);
    losses[i] = loss.value();
  }
  double sum = 0;
  for (const double loss : losses) sum += loss;
  return sum;
}

}  // namespace fovea::kernel
