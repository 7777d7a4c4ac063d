#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "ops/attention_kernel.h"
#include "ops/vector_math.h"

namespace fovea::kernel {
namespace {

// y = Σ_u softmax(q k_u / √d)_u v_u, with k_u and v_u at rows index[0 … n) of kv.
template <class T>
void attend_one(const T* q, Matrix<const T> kv, const int32_t* index, int64_t n, int64_t d,
                int64_t head, T* weights, T* y) {
  const T scale = static_cast<T>(1 / std::sqrt(static_cast<double>(d)));
  const int64_t values = kv.cols / 2;
  T top = -std::numeric_limits<T>::infinity(), sum = 0;
  for (int64_t u = 0; u < n; ++u) {
    const T* k = kv.row(index[u]) + head * d;
    T dot = 0;
#pragma omp simd reduction(+ : dot)
    for (int64_t j = 0; j < d; ++j) dot += q[j] * k[j];
    weights[u] = dot * scale;
    top = std::max(top, weights[u]);
  }
#pragma omp simd reduction(+ : sum)
  for (int64_t u = 0; u < n; ++u) {
    weights[u] = math::exp(weights[u] - top);
    sum += weights[u];
  }
  const T by = 1 / sum;
  std::fill_n(y, d, T{0});
  for (int64_t u = 0; u < n; ++u) {
    const T a = weights[u] * by;
    const T* v = kv.row(index[u]) + values + head * d;
    for (int64_t j = 0; j < d; ++j) y[j] += a * v[j];
  }
}

}  // namespace

template <class T>
void attend_remembered(Cpu, Matrix<const T> q, Matrix<const T> kv, Matrix<const int32_t> index,
                       const int32_t* lengths, int64_t heads, Matrix<T> y) {
  const int64_t d = q.cols / heads;
#pragma omp parallel if (q.size() * index.cols > kWorthThreads)
  {
    std::vector<T> weights(static_cast<size_t>(index.cols));
#pragma omp for schedule(static)
    for (int64_t r = 0; r < q.rows; ++r)
      for (int64_t h = 0; h < heads; ++h)
        attend_one(q.row(r) + h * d, kv, index.row(r), lengths[r], d, h, weights.data(),
                   y.row(r) + h * d);
  }
}

template void attend_remembered(Cpu, Matrix<const float>, Matrix<const float>,
                                Matrix<const int32_t>, const int32_t*, int64_t, Matrix<float>);
template void attend_remembered(Cpu, Matrix<const double>, Matrix<const double>,
                                Matrix<const int32_t>, const int32_t*, int64_t, Matrix<double>);

}  // namespace fovea::kernel
