#include <algorithm>
#include <cmath>
#include <map>
#include <tuple>
#include <vector>

#include "ops/matmul_kernel.h"
#include "ops/onednn.h"

namespace fovea::kernel {
namespace {

using dnnl::memory;

// Rows scaled so that the largest entry becomes ±127.
struct Quantised {
  std::vector<int8_t> values;
  std::vector<float> scales;  // one per row: x ≈ scale · value
};

void quantise(Matrix<const float> x, Quantised& q) {
  q.values.resize(static_cast<size_t>(x.size()));
  q.scales.resize(static_cast<size_t>(x.rows));
#pragma omp parallel for schedule(static) if (x.size() > kWorthThreads)
  for (int64_t i = 0; i < x.rows; ++i) {
    const float* row = x.row(i);
    float top = 0;
    for (int64_t j = 0; j < x.cols; ++j) top = std::max(top, std::abs(row[j]));
    const float inverse = top > 0 ? 127.0f / top : 0.0f;
    q.scales[static_cast<size_t>(i)] = top / 127.0f;
    int8_t* to = q.values.data() + i * x.cols;
    for (int64_t j = 0; j < x.cols; ++j)
      to[j] = static_cast<int8_t>(static_cast<int32_t>(std::nearbyint(row[j] * inverse)));
  }
}

struct KeptWeights {
  std::map<std::tuple<const float*, int64_t, int64_t>, Quantised> by_address;
  uint64_t generation = 0;
};
thread_local KeptWeights kept_weights;

}  // namespace

void matmul_int8(Cpu, Matrix<const float> x, Matrix<const float> W, const float* bias,
                 Matrix<float> y) {
  if (y.size() == 0) return;
  if (kept_weights.generation != packed_generation()) {
    kept_weights.by_address.clear();
    kept_weights.generation = packed_generation();
  }
  auto [at, fresh] = kept_weights.by_address.try_emplace({W.data, W.rows, W.cols});
  Quantised& w = at->second;
  if (fresh) quantise(W, w);
  thread_local Quantised q;
  thread_local std::vector<int32_t> sums;
  quantise(x, q);
  sums.resize(static_cast<size_t>(y.size()));
  const ProductShape shape{y.rows,
                           y.cols,
                           x.cols,
                           false,
                           true,
                           true,
                           false,
                           false,
                           memory::data_type::s8,
                           memory::data_type::s32};
  const KeptProduct& kept = kept_product(shape);
  const memory plain({{x.cols, y.cols}, memory::data_type::s8, memory::dims{1, x.cols}}, engine(),
                     w.values.data());
  execute(kept, q.values.data(), packed(kept, plain), nullptr, sums.data());
  const int32_t* const from = sums.data();
  const float *const rows = q.scales.data(), *const columns = w.scales.data();
#pragma omp parallel for schedule(static) if (y.size() > kWorthThreads)
  for (int64_t i = 0; i < y.rows; ++i)
    for (int64_t j = 0; j < y.cols; ++j)
      y.row(i)[j] =
          static_cast<float>(from[i * y.cols + j]) * rows[i] * columns[j] + (bias ? bias[j] : 0.0f);
}

}  // namespace fovea::kernel
