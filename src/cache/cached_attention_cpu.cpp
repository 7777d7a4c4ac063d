#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "gemm/small_gemm.h"
#include "ops/attention_kernel.h"
#include "ops/vector_math.h"

namespace fovea::kernel {
namespace {

// The cached words to which one row of q attends: the rows index[0 … n) of kv. In kv, the first
// half of the columns has the keys, the second half the values.
template <class T>
struct CachedWords {
  Matrix<const T> kv;
  const int32_t* index;
  int64_t n;
};

template <class T>
void score_scalar(const T* q, const CachedWords<T>& in, int64_t heads, T scale, T* scores) {
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

// Returns the same bits as score_scalar(), but faster. REQUIRES: d is a multiple of kLanes<T>. To
// add the lanes of one dot product takes longer than its multiplications. So the function collects
// kLanes dot products, transposes their lanes and adds them as vectors.
template <class T>
void score_vectorised(const T* q, const CachedWords<T>& in, int64_t heads, T scale, T* scores) {
  using V = typename SimdVector<T>::type;
  constexpr int64_t kSide = kLanes<T>;
  const int64_t d = in.kv.cols / 2 / heads, all = in.n * heads;
  V sums[kSide], transposed[kSide];
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
                      {reinterpret_cast<T*>(transposed), kSide});
    V dot = transposed[0];
    for (int64_t l = 1; l < kSide; ++l) dot += transposed[l];
    for (int64_t i = 0; i < count; ++i)
      scores[(first + i) % heads * in.n + (first + i) / heads] = dot[i] * scale;
  }
}

// Adds the distance scores; the query is at the position of the last word.
template <class T>
void add_distances(DistanceScores<T> distances, int64_t heads, int64_t n, T* scores) {
  for (int64_t u = 0; u < n; ++u) {
    const T* const row = distances.data + (distances.reach + u - (n - 1)) * heads;
    for (int64_t h = 0; h < heads; ++h) scores[h * n + u] += row[h];
  }
}

// y = Σ_u softmax(q k_u / √d)_u v_u for all heads. Reads each row of kv from end to end, that is
// all heads of a word, because sequential reads from memory are fastest.
template <class T>
void attend_row(const T* q, const CachedWords<T>& in, int64_t heads, DistanceScores<T> distances,
                T* weights, T* y) {
  const int64_t size = in.kv.cols / 2, d = size / heads, n = in.n;
  const T scale = static_cast<T>(1 / std::sqrt(static_cast<double>(d)));
  const auto score = d % kLanes<T> == 0 ? score_vectorised<T> : score_scalar<T>;
  score(q, in, heads, scale, weights);
  if (distances.data) add_distances(distances, heads, n, weights);
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
                       const int32_t* lengths, int64_t heads, DistanceScores<T> distances,
                       Matrix<T> y) {
#pragma omp parallel if (q.size() * index.cols > kWorthThreads)
  {
    std::vector<T> weights(static_cast<size_t>(index.cols * heads));
#pragma omp for schedule(static)
    for (int64_t r = 0; r < q.rows; ++r)
      attend_row(q.row(r), {kv, index.row(r), lengths[r]}, heads, distances, weights.data(),
                 y.row(r));
  }
}

template void attend_remembered(Cpu, Matrix<const float>, Matrix<const float>,
                                Matrix<const int32_t>, const int32_t*, int64_t,
                                DistanceScores<float>, Matrix<float>);
template void attend_remembered(Cpu, Matrix<const double>, Matrix<const double>,
                                Matrix<const int32_t>, const int32_t*, int64_t,
                                DistanceScores<double>, Matrix<double>);

}  // namespace fovea::kernel
