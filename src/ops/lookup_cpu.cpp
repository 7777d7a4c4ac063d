#include <algorithm>
#include <cstddef>
#include <limits>
#include <vector>

#include "ops/lookup_kernel.h"
#include "ops/vector_math.h"

namespace fovea::kernel {
namespace {

// The queries of each sentence in their order: those of b are at[first[b]] … at[first[b + 1]].
struct BySentence {
  std::vector<int64_t> first, at;

  explicit BySentence(const Looking& look)
      : first(static_cast<size_t>(look.sentences + 1), 0), at(static_cast<size_t>(look.queries)) {
    for (int64_t i = 0; i < look.queries; ++i) ++first[static_cast<size_t>(look.sentence[i]) + 1];
    for (size_t b = 1; b < first.size(); ++b) first[b] += first[b - 1];
    std::vector<int64_t> next = first;
    for (int64_t i = 0; i < look.queries; ++i)
      at[static_cast<size_t>(next[static_cast<size_t>(look.sentence[i])]++)] = i;
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

void lengths(Cpu, const Looking& look, int32_t* n) {
  for (int64_t i = 0; i < look.queries; ++i) n[i] = static_cast<int32_t>(look.words(i));
}

template <class T>
void lengths_as(Cpu, const Looking& look, int64_t most, T* n) {
  for (int64_t i = 0; i < look.queries; ++i) n[i] = static_cast<T>(std::min(look.words(i), most));
}

template <class T>
void look_dot(Cpu, const Looking& look, Matrix<const T> q, Matrix<const T> k, Matrix<T> e,
              Fold fold) {
#pragma omp parallel for schedule(static) if (e.size() * q.cols > kWorthThreads)
  for (int64_t i = 0; i < look.queries; ++i) {
    const int64_t first = look.first(i), words = look.words(i);
    for (int64_t j = 0; j < words; ++j)
      fold_into(e.row(i)[j], fold, dot(q.row(i), k.row(first + j), q.cols));
    if (fold == Fold::set) std::fill(e.row(i) + words, e.row(i) + e.cols, T{0});
  }
}

template <class T>
void look_blend(Cpu, const Looking& look, Matrix<const T> e, Matrix<const T> k, Matrix<T> q,
                Fold fold, Matrix<bf16>) {
#pragma omp parallel for schedule(static) if (e.size() * q.cols > kWorthThreads)
  for (int64_t i = 0; i < look.queries; ++i) {
    const int64_t first = look.first(i), words = look.words(i);
    T* to = q.row(i);
    if (fold == Fold::set) std::fill_n(to, q.cols, T{0});
    for (int64_t j = 0; j < words; ++j) {
      const T weight = e.row(i)[j];
      if (weight == 0) continue;  // most words, where attention is hard or local
      const T* from = k.row(first + j);
      fold_row(to, q.cols, Fold::add, [=](int64_t a) { return weight * from[a]; });
    }
  }
}

// Each sentence's words belong to one job, which takes its queries in order.
template <class T>
void look_spread(Cpu, const Looking& look, Matrix<const T> e, Matrix<const T> q, Matrix<T> k,
                 Fold fold) {
  const BySentence queries(look);
#pragma omp parallel for schedule(static) if (e.size() * q.cols > kWorthThreads)
  for (int64_t b = 0; b < look.sentences; ++b) {
    const int64_t first = look.offsets[b], words = look.offsets[b + 1] - first;
    if (fold == Fold::set) std::fill_n(k.row(first), words * k.cols, T{0});
    queries.each(b, [&](int64_t i) {
      const T* from = q.row(i);
      for (int64_t j = 0; j < words; ++j) {
        const T weight = e.row(i)[j];
        if (weight == 0) continue;
        fold_row(k.row(first + j), k.cols, Fold::add, [=](int64_t a) { return weight * from[a]; });
      }
    });
  }
}

template <class T>
void additive_scores(Cpu, const Looking& look, Matrix<const T> q, Matrix<const T> k, const T* v,
                     Matrix<T> e) {
#pragma omp parallel for schedule(static) if (e.size() * q.cols > kWorthThreads)
  for (int64_t i = 0; i < look.queries; ++i) {
    const int64_t first = look.first(i), words = look.words(i);
    const T* ask = q.row(i);
    for (int64_t j = 0; j < words; ++j) {
      const T* key = k.row(first + j);
      T sum = 0;
#pragma omp simd reduction(+ : sum)
      for (int64_t a = 0; a < q.cols; ++a) sum += v[a] * math::tanh(ask[a] + key[a]);
      e.row(i)[j] = sum;
    }
    std::fill(e.row(i) + words, e.row(i) + e.cols, T{0});
  }
}

namespace {

// Where the gradients of one query and one word gather.
template <class T>
struct Gathering {
  T *dq, *dk, *dv;
};

template <class T>
void additive_back(int64_t n, const T* q, const T* k, const T* v, T de, const Gathering<T>& to) {
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

// Each sentence is one job: its queries, in order, its words, and its part of dv.
template <class T>
void additive_scores_grad(Cpu, const Looking& look, Matrix<const T> q, Matrix<const T> k,
                          const T* v, Matrix<const T> de, const AdditiveGrad<T>& out) {
  const BySentence queries(look);
  const int64_t A = q.cols;
  std::vector<T> parts(static_cast<size_t>(look.sentences * A), T{0});
#pragma omp parallel if (de.size() * A > kWorthThreads)
  {
    std::vector<T> dq(static_cast<size_t>(A)), unwanted(static_cast<size_t>(A));
#pragma omp for schedule(static)
    for (int64_t b = 0; b < look.sentences; ++b) {
      const int64_t first = look.offsets[b], words = look.offsets[b + 1] - first;
      if (out.dk.data && out.fold_k == Fold::set) std::fill_n(out.dk.row(first), words * A, T{0});
      queries.each(b, [&](int64_t i) {
        std::fill(dq.begin(), dq.end(), T{0});
        for (int64_t j = 0; j < words; ++j) {
          if (de.row(i)[j] == 0) continue;
          T* dk = out.dk.data ? out.dk.row(first + j) : unwanted.data();
          additive_back<T>(A, q.row(i), k.row(first + j), v, de.row(i)[j],
                           {dq.data(), dk, parts.data() + b * A});
        }
        const T* found = dq.data();
        if (out.dq.data)
          fold_row(out.dq.row(i), A, out.fold_q, [=](int64_t a) { return found[a]; });
      });
    }
  }
  if (!out.dv) return;
  if (out.fold_v == Fold::set) std::fill_n(out.dv, A, T{0});
  for (int64_t b = 0; b < look.sentences; ++b) {
    const T* part = parts.data() + b * A;
    fold_row(out.dv, A, Fold::add, [=](int64_t a) { return part[a]; });
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

#define FOVEA_INSTANTIATE(T)                                                                       \
  template void lengths_as(Cpu, const Looking&, int64_t, T*);                                      \
  template void look_dot(Cpu, const Looking&, Matrix<const T>, Matrix<const T>, Matrix<T>, Fold);  \
  template void look_blend(Cpu, const Looking&, Matrix<const T>, Matrix<const T>, Matrix<T>, Fold, \
                           Matrix<bf16>);                                                          \
  template void look_spread(Cpu, const Looking&, Matrix<const T>, Matrix<const T>, Matrix<T>,      \
                            Fold);                                                                 \
  template void additive_scores(Cpu, const Looking&, Matrix<const T>, Matrix<const T>, const T*,   \
                                Matrix<T>);                                                        \
  template void additive_scores_grad(Cpu, const Looking&, Matrix<const T>, Matrix<const T>,        \
                                     const T*, Matrix<const T>, const AdditiveGrad<T>&);           \
  template void softmax_within(Cpu, Matrix<const T>, const int32_t*, const int32_t*, Matrix<T>);
FOVEA_INSTANTIATE(float)
FOVEA_INSTANTIATE(double)
#undef FOVEA_INSTANTIATE

}  // namespace fovea::kernel
