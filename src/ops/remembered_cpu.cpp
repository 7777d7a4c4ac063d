#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "ops/attention_kernel.h"
#include "ops/tile.h"
#include "ops/vector_math.h"

namespace fovea::kernel {
namespace {

// Keys and values that one row of q looks at: rows index[0 … n) of kv, whose first half of columns
// is the keys'.
template <class T>
struct Looked {
  Matrix<const T> kv;
  const int32_t* index;
  int64_t n;
};

template <class T>
void score_plainly(const T* q, const Looked<T>& in, int64_t heads, T scale, T* scores) {
  const int64_t d = in.kv.cols / 2 / heads;
  for (int64_t u = 0; u < in.n; ++u)
    for (int64_t h = 0; h < heads; ++h) {
      const T *k_h = in.kv.row(in.index[u]) + h * d, *q_h = q + h * d;
      T dot = 0;
#pragma omp simd reduction(+ : dot)
      for (int64_t j = 0; j < d; ++j) dot += q_h[j] * k_h[j];
      scores[h * in.n + u] = dot * scale;
    }
}

// The same, bit for bit, where heads are whole vectors. Adding up the lanes of each product alone
// would take longer than the product; those of as many products as there are lanes are turned and
// added up side by side.
template <class T>
void score_in_lanes(const T* q, const Looked<T>& in, int64_t heads, T scale, T* scores) {
  using V = typename Vector<T>::type;
  constexpr int64_t kSide = kLanes<T>;
  const int64_t d = in.kv.cols / 2 / heads, all = in.n * heads;
  V sums[kSide], turned[kSide];
  for (int64_t first = 0; first < all; first += kSide) {
    const int64_t count = std::min(kSide, all - first);
    for (int64_t i = 0; i < count; ++i) {
      const int64_t u = (first + i) / heads, h = (first + i) % heads;
      const T *k_h = in.kv.row(in.index[u]) + h * d, *q_h = q + h * d;
      V sum{};
      for (int64_t j = 0; j < d; j += kSide)
        sum += *reinterpret_cast<const V*>(q_h + j) * *reinterpret_cast<const V*>(k_h + j);
      sums[i] = sum;
    }
    tile_transpose<T>(count, {reinterpret_cast<const T*>(sums), kSide},
                      {reinterpret_cast<T*>(turned), kSide});
    V dot = turned[0];
    for (int64_t l = 1; l < kSide; ++l) dot += turned[l];
    for (int64_t i = 0; i < count; ++i)
      scores[(first + i) % heads * in.n + (first + i) / heads] = dot[i] * scale;
  }
}

// y = Σ_u softmax(q k_u / √d)_u v_u for all heads. Rows of kv are read from end to end, all heads
// of one word after the other: they come from memory, which likes that best.
template <class T>
void attend_row(const T* q, const Looked<T>& in, int64_t heads, T* weights, T* y) {
  const int64_t size = in.kv.cols / 2, d = size / heads, n = in.n;
  const T scale = static_cast<T>(1 / std::sqrt(static_cast<double>(d)));
  const auto score = d % kLanes<T> == 0 ? score_in_lanes<T> : score_plainly<T>;
  score(q, in, heads, scale, weights);
  for (int64_t h = 0; h < heads; ++h) {
    T* const e = weights + h * n;
    T top = -std::numeric_limits<T>::infinity(), sum = 0;
    for (int64_t u = 0; u < n; ++u) top = std::max(top, e[u]);
#pragma omp simd reduction(+ : sum)
    for (int64_t u = 0; u < n; ++u) {
      e[u] = math::exp(e[u] - top);
      sum += e[u];
    }
    const T by = 1 / sum;
    for (int64_t u = 0; u < n; ++u) e[u] *= by;
  }
  std::fill_n(y, size, T{0});
  for (int64_t u = 0; u < n; ++u)
    for (int64_t h = 0; h < heads; ++h) {
      const T a = weights[h * n + u];
      const T* const v = in.kv.row(in.index[u]) + size + h * d;
#pragma omp simd
      for (int64_t j = 0; j < d; ++j) y[h * d + j] += a * v[j];
    }
}

}  // namespace

template <class T>
void attend_remembered(Cpu, Matrix<const T> q, Matrix<const T> kv, Matrix<const int32_t> index,
                       const int32_t* lengths, int64_t heads, Matrix<T> y) {
#pragma omp parallel if (q.size() * index.cols > kWorthThreads)
  {
    std::vector<T> weights(static_cast<size_t>(index.cols * heads));
#pragma omp for schedule(static)
    for (int64_t r = 0; r < q.rows; ++r)
      attend_row(q.row(r), {kv, index.row(r), lengths[r]}, heads, weights.data(), y.row(r));
  }
}

template void attend_remembered(Cpu, Matrix<const float>, Matrix<const float>,
                                Matrix<const int32_t>, const int32_t*, int64_t, Matrix<float>);
template void attend_remembered(Cpu, Matrix<const double>, Matrix<const double>,
                                Matrix<const int32_t>, const int32_t*, int64_t, Matrix<double>);

}  // namespace fovea::kernel
