#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "ops/alignment_loss_kernel.h"
#include "ops/vector_math.h"

namespace fovea::kernel {
namespace {

// The queries and keys of one sentence, and the links between them.
template <class T>
struct Sentence {
  const AlignmentLossInput<T>& in;
  int64_t first_query, queries, first_key, keys;
  T by;  // factor of the scores, 1 / √d_k

  Sentence(const AlignmentLossInput<T>& input, int64_t b)
      : in(input), first_query(in.query_offsets[b]), queries(in.query_offsets[b + 1] - first_query),
        first_key(in.key_offsets[b]), keys(in.key_offsets[b + 1] - first_key),
        by(static_cast<T>(1 / std::sqrt(static_cast<double>(in.q.cols)))) {}

  int64_t links(int64_t n) const { return in.link_offsets[n + 1] - in.link_offsets[n]; }

  // s_nj = q_n k_j / √d_k for all keys j of the sentence.
  void scores(int64_t n, T* s) const {
    const T* q = in.q.row(n);
    for (int64_t j = 0; j < keys; ++j) {
      const T* k = in.k.row(first_key + j);
      T sum = 0;
#pragma omp simd reduction(+ : sum)
      for (int64_t i = 0; i < in.q.cols; ++i) sum += q[i] * k[i];
      s[j] = sum * by;
    }
  }

  // Replaces the scores s by scale (a_nj − [j ∈ G_n] / |G_n|) / √d_k.
  void score_gradient(int64_t n, T scale, T log_sum, T* s) const {
    for (int64_t j = 0; j < keys; ++j) s[j] = scale * by * math::exp(s[j] - log_sum);
    const T share = scale * by / static_cast<T>(links(n));
    for (int32_t l = in.link_offsets[n]; l < in.link_offsets[n + 1]; ++l) s[in.links[l]] -= share;
  }
};

template <class T>
bool is_large(const AlignmentLossInput<T>& in) {
  return in.q.rows * in.k.rows / std::max<int64_t>(1, in.sentences) * in.q.cols > kWorthThreads;
}

template <class T>
void loss_of(const Sentence<T>& sentence, int64_t n, std::vector<T>& s, T& loss, T& log_sum) {
  loss = log_sum = 0;
  if (sentence.links(n) == 0) return;
  sentence.scores(n, s.data());
  const T top = *std::max_element(s.begin(), s.end());
  T sum = 0;
  for (const T score : s) sum += math::exp(score - top);
  log_sum = top + std::log(sum);
  for (int32_t l = sentence.in.link_offsets[n]; l < sentence.in.link_offsets[n + 1]; ++l)
    loss += log_sum - s[static_cast<size_t>(sentence.in.links[l])];  // −log a_nj
  loss /= static_cast<T>(sentence.links(n));
}

}  // namespace

template <class T>
void guide_loss(Cpu, const AlignmentLossInput<T>& in, T* losses, T* log_sums) {
#pragma omp parallel for schedule(dynamic, 1) if (is_large(in))
  for (int64_t b = 0; b < in.sentences; ++b) {
    const Sentence<T> sentence(in, b);
    std::vector<T> s(static_cast<size_t>(sentence.keys));
    for (int64_t n = sentence.first_query; n < sentence.first_query + sentence.queries; ++n)
      loss_of(sentence, n, s, losses[n], log_sums[n]);
  }
}

template <class T>
void guide_loss_grad_q(Cpu, const AlignmentLossInput<T>& in, const T* scale, const T* log_sums,
                       Matrix<T> dq, OutputMode fold) {
  const T by = scale ? *scale : T{1};
#pragma omp parallel for schedule(dynamic, 1) if (is_large(in))
  for (int64_t b = 0; b < in.sentences; ++b) {
    const Sentence<T> sentence(in, b);
    std::vector<T> s(static_cast<size_t>(sentence.keys)), sum(static_cast<size_t>(dq.cols));
    for (int64_t n = sentence.first_query; n < sentence.first_query + sentence.queries; ++n) {
      std::fill(sum.begin(), sum.end(), T{0});
      if (sentence.links(n) > 0) {
        sentence.scores(n, s.data());
        sentence.score_gradient(n, by, log_sums[n], s.data());
        for (int64_t j = 0; j < sentence.keys; ++j) {
          const T* k = in.k.row(sentence.first_key + j);
          for (int64_t i = 0; i < dq.cols; ++i) sum[i] += s[j] * k[i];  // dq = ds k
        }
      }
      fold_row(dq.row(n), dq.cols, fold, [&](int64_t i) { return sum[i]; });
    }
  }
}

template <class T>
void guide_loss_grad_k(Cpu, const AlignmentLossInput<T>& in, const T* scale, const T* log_sums,
                       Matrix<T> dk, OutputMode fold) {
  const T by = scale ? *scale : T{1};
#pragma omp parallel for schedule(dynamic, 1) if (is_large(in))
  for (int64_t b = 0; b < in.sentences; ++b) {
    const Sentence<T> sentence(in, b);
    std::vector<T> s(static_cast<size_t>(sentence.keys));
    std::vector<T> sums(static_cast<size_t>(sentence.keys * dk.cols), T{0});
    for (int64_t n = sentence.first_query; n < sentence.first_query + sentence.queries; ++n) {
      if (sentence.links(n) == 0) continue;
      sentence.scores(n, s.data());
      sentence.score_gradient(n, by, log_sums[n], s.data());
      const T* q = in.q.row(n);
      for (int64_t j = 0; j < sentence.keys; ++j)
        for (int64_t i = 0; i < dk.cols; ++i) sums[j * dk.cols + i] += s[j] * q[i];  // dk = dsᵀ q
    }
    for (int64_t j = 0; j < sentence.keys; ++j)
      fold_row(dk.row(sentence.first_key + j), dk.cols, fold,
               [&](int64_t i) { return sums[j * dk.cols + i]; });
  }
}

#define FOVEA_INSTANTIATE(T)                                                             \
  template void guide_loss(Cpu, const AlignmentLossInput<T>&, T*, T*);                   \
  template void guide_loss_grad_q(Cpu, const AlignmentLossInput<T>&, const T*, const T*, \
                                  Matrix<T>, OutputMode);                                \
  template void guide_loss_grad_k(Cpu, const AlignmentLossInput<T>&, const T*, const T*, \
                                  Matrix<T>, OutputMode);
FOVEA_INSTANTIATE(float)
FOVEA_INSTANTIATE(double)
#undef FOVEA_INSTANTIATE

}  // namespace fovea::kernel
