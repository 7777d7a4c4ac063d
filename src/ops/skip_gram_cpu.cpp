#include <array>
#include <bit>
#include <cmath>
#include <vector>

#include "ops/skip_gram_kernel.h"
#include "ops/tile.h"
#include "ops/vector_math.h"

namespace fovea::kernel {
namespace {

using V = Vector<float>::type;
constexpr int64_t kStep = kLanes<float>;
constexpr size_t kAhead = 4;        // pairs between asking for a row and using it
constexpr int kFactors = 32;        // probabilities multiplied before one logarithm is taken
constexpr double kLeast = 0x1p-30;  // what a probability counts as at least: 32 of them fit
constexpr size_t kFewPairs = 2000;  // for fewer, waking threads costs more than they save

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

void fetch(const float* row, int64_t n) {
  for (int64_t j = 0; j < n; j += 16) __builtin_prefetch(row + j, 1);
}

// −Σ log p as the logarithm of products, so that few logarithms are taken.
class LogLoss {
 public:
  void add(float p) {
    product_ *= p > kLeast || std::isnan(p) ? static_cast<double>(p) : kLeast;
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
    if (k + kAhead < pairs.size()) {
      fetch(t.input + pairs[k + kAhead].input * n, n);
      fetch(t.output + row_of(pairs[k + kAhead].output) * n, n);
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
#pragma omp parallel for schedule(dynamic, 1) if (pairs > kFewPairs)
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
