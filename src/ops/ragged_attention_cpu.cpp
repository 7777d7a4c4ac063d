#include <algorithm>
#include <cstddef>
#include <limits>
#include <vector>

#include "ops/ragged_attention_kernel.h"
#include "ops/vector_math.h"

namespace fovea::kernel {
namespace {

// The queries of each sentence in ascending order: sentence b has the queries at[first[b]] …
// at[first[b + 1] − 1].
struct SentenceQueries {
  std::vector<int64_t> first, at;

  explicit SentenceQueries(const RaggedIndex& ragged)
      : first(static_cast<size_t>(ragged.sentences + 1), 0),
        at(static_cast<size_t>(ragged.queries)) {
    for (int64_t i = 0; i < ragged.queries; ++i)
      ++first[static_cast<size_t>(ragged.sentence[i]) + 1];
    for (size_t b = 1; b < first.size(); ++b) first[b] += first[b - 1];
    std::vector<int64_t> next = first;
    for (int64_t i = 0; i < ragged.queries; ++i)
      at[static_cast<size_t>(next[static_cast<size_t>(ragged.sentence[i])]++)] = i;
  }

  template <class Body>
  void each(int64_t b, Body body) const {
    for (int64_t n = first[static_cast<size_t>(b)]; n < first[static_cast<size_t>(b + 1)]; ++n)
      body(at[static_cast<size_t>(n)]);
  }
};

template <class T>
T dot(const T* a, const T* b, int64_t n) {
  T sum = 0;
#pragma omp simd reduction(+ : sum)
  for (int64_t j = 0; j < n; ++j) sum += a[j] * b[j];
  return sum;
}

}  // namespace

void lengths(Cpu, const RaggedIndex& ragged, int32_t* n) {
  for (int64_t i = 0; i < ragged.queries; ++i) n[i] = static_cast<int32_t>(ragged.words(i));
}

template <class T>
void lengths_as(Cpu, const RaggedIndex& ragged, int64_t most, T* n) {
  for (int64_t i = 0; i < ragged.queries; ++i)
    n[i] = static_cast<T>(std::min(ragged.words(i), most));
}

template <class T>
void ragged_dot(Cpu, const RaggedIndex& ragged, Matrix<const T> q, Matrix<const T> k, Matrix<T> e,
                OutputMode fold) {
#pragma omp parallel for schedule(static) if (e.size() * q.cols > kWorthThreads)
  for (int64_t i = 0; i < ragged.queries; ++i) {
    const int64_t first = ragged.first(i), words = ragged.words(i);
    for (int64_t j = 0; j < words; ++j)
      fold_into(e.row(i)[j], fold, dot(q.row(i), k.row(first + j), q.cols));
    if (fold == OutputMode::set) std::fill(e.row(i) + words, e.row(i) + e.cols, T{0});
  }
}

template <class T>
void sum_over_words(Cpu, const RaggedIndex& ragged, Matrix<const T> e, Matrix<const T> k,
                    Matrix<T> q, OutputMode fold, Matrix<bf16>) {
#pragma omp parallel for schedule(static) if (e.size() * q.cols > kWorthThreads)
  for (int64_t i = 0; i < ragged.queries; ++i) {
    const int64_t first = ragged.first(i), words = ragged.words(i);
    T* to = q.row(i);
    if (fold == OutputMode::set) std::fill_n(to, q.cols, T{0});
    for (int64_t j = 0; j < words; ++j) {
      const T weight = e.row(i)[j];
      if (weight == 0) continue;  // if attention is hard or local, most weights are 0
      const T* from = k.row(first + j);
      fold_row(to, q.cols, OutputMode::add, [=](int64_t a) { return weight * from[a]; });
    }
  }
}

// Each sentence is one job, which adds the queries of the sentence in order.
template <class T>
void sum_over_queries(Cpu, const RaggedIndex& ragged, Matrix<const T> e, Matrix<const T> q,
                      Matrix<T> k, OutputMode fold) {
  const SentenceQueries queries(ragged);
#pragma omp parallel for schedule(static) if (e.size() * q.cols > kWorthThreads)
  for (int64_t b = 0; b < ragged.sentences; ++b) {
    const int64_t first = ragged.offsets[b], words = ragged.offsets[b + 1] - first;
    if (fold == OutputMode::set) std::fill_n(k.row(first), words * k.cols, T{0});
    queries.each(b, [&](int64_t i) {
      const T* from = q.row(i);
      for (int64_t j = 0; j < words; ++j) {
        const T weight = e.row(i)[j];
        if (weight == 0) continue;
        fold_row(k.row(first + j), k.cols, OutputMode::add,
                 [=](int64_t a) { return weight * from[a]; });
      }
    });
  }
}

template <class T>
void additive_scores(Cpu, const RaggedIndex& ragged, Matrix<const T> q, Matrix<const T> k,
                     const T* v, Matrix<T> e) {
#pragma omp parallel for schedule(static) if (e.size() * q.cols > kWorthThreads)
  for (int64_t i = 0; i < ragged.queries; ++i) {
    const int64_t first = ragged.first(i), words = ragged.words(i);
    const T* query = q.row(i);
    for (int64_t j = 0; j < words; ++j) {
      const T* key = k.row(first + j);
      T sum = 0;
#pragma omp simd reduction(+ : sum)
      for (int64_t a = 0; a < q.cols; ++a) sum += v[a] * math::tanh(query[a] + key[a]);
      e.row(i)[j] = sum;
    }
    std::fill(e.row(i) + words, e.row(i) + e.cols, T{0});
  }
}

namespace {

// The rows of the gradients that the pair of one query and one word adds to.
template <class T>
struct GradientRows {
  T *dq, *dk, *dv;
};

template <class T>
void additive_backward(int64_t n, const T* q, const T* k, const T* v, T de,
                       const GradientRows<T>& to) {
  T *dq = to.dq, *dk = to.dk, *dv = to.dv;
#pragma omp simd
  for (int64_t a = 0; a < n; ++a) {
    const T t = math::tanh(q[a] + k[a]);
    const T g = de * v[a] * (T{1} - t * t);
    dq[a] += g;
    dk[a] += g;
    dv[a] += de * t;
  }
}

}  // namespace

// Each sentence is one job. It computes the gradients of its queries (in order) and words, and its
// terms of dv.
template <class T>
void additive_scores_grad(Cpu, const RaggedIndex& ragged, Matrix<const T> q, Matrix<const T> k,
                          const T* v, Matrix<const T> de, const AdditiveGrad<T>& out) {
  const SentenceQueries queries(ragged);
  const int64_t A = q.cols;
  std::vector<T> parts(static_cast<size_t>(ragged.sentences * A), T{0});
#pragma omp parallel if (de.size() * A > kWorthThreads)
  {
    std::vector<T> dq(static_cast<size_t>(A)), unwanted(static_cast<size_t>(A));
#pragma omp for schedule(static)
    for (int64_t b = 0; b < ragged.sentences; ++b) {
      const int64_t first = ragged.offsets[b], words = ragged.offsets[b + 1] - first;
      if (out.dk.data && out.fold_k == OutputMode::set)
        std::fill_n(out.dk.row(first), words * A, T{0});
      queries.each(b, [&](int64_t i) {
        std::fill(dq.begin(), dq.end(), T{0});
        for (int64_t j = 0; j < words; ++j) {
          if (de.row(i)[j] == 0) continue;
          T* dk = out.dk.data ? out.dk.row(first + j) : unwanted.data();
          additive_backward<T>(A, q.row(i), k.row(first + j), v, de.row(i)[j],
                               {dq.data(), dk, parts.data() + b * A});
        }
        const T* total = dq.data();
        if (out.dq.data)
          fold_row(out.dq.row(i), A, out.fold_q, [=](int64_t a) { return total[a]; });
      });
    }
  }
  if (!out.dv) return;
  if (out.fold_v == OutputMode::set) std::fill_n(out.dv, A, T{0});
  for (int64_t b = 0; b < ragged.sentences; ++b) {
    const T* part = parts.data() + b * A;
    fold_row(out.dv, A, OutputMode::add, [=](int64_t a) { return part[a]; });
  }
}

template <class T>
void softmax_within(Cpu, Matrix<const T> e, const int32_t* low, const int32_t* high, Matrix<T> y) {
#pragma omp parallel for schedule(static) if (e.size() > kWorthThreads)
  for (int64_t i = 0; i < e.rows; ++i) {
    const T* in = e.row(i);
    T* out = y.row(i);
    std::fill_n(out, y.cols, T{0});
    T top = -std::numeric_limits<T>::infinity();
    for (int64_t j = low[i]; j < high[i]; ++j) top = std::max(top, in[j]);
    double sum = 0;
    for (int64_t j = low[i]; j < high[i]; ++j) {
      out[j] = math::exp(in[j] - top);
      sum += static_cast<double>(out[j]);
    }
    const T scale = static_cast<T>(1 / sum);
    for (int64_t j = low[i]; j < high[i]; ++j) out[j] *= scale;
  }
}

#define FOVEA_INSTANTIATE(T)                                                                     \
  template void lengths_as(Cpu, const RaggedIndex&, int64_t, T*);                                \
  template void ragged_dot(Cpu, const RaggedIndex&, Matrix<const T>, Matrix<const T>, Matrix<T>, \
                           OutputMode);                                                          \
  template void sum_over_words(Cpu, const RaggedIndex&, Matrix<const T>, Matrix<const T>,        \
                               Matrix<T>, OutputMode, Matrix<bf16>);                             \
  template void sum_over_queries(Cpu, const RaggedIndex&, Matrix<const T>, Matrix<const T>,      \
                                 Matrix<T>, OutputMode);                                         \
  template void additive_scores(Cpu, const RaggedIndex&, Matrix<const T>, Matrix<const T>,       \
                                const T*, Matrix<T>);                                            \
  template void additive_scores_grad(Cpu, const RaggedIndex&, Matrix<const T>, Matrix<const T>,  \
                                     const T*, Matrix<const T>, const AdditiveGrad<T>&);         \
  template void softmax_within(Cpu, Matrix<const T>, const int32_t*, const int32_t*, Matrix<T>);
FOVEA_INSTANTIATE(float)
FOVEA_INSTANTIATE(double)
#undef FOVEA_INSTANTIATE

}  // namespace fovea::kernel
