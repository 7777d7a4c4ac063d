#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "ops/attention_kernel.h"
#include "ops/dropout_mask.h"
#include "ops/tile.h"
#include "ops/vector_math.h"

namespace fovea::kernel {
namespace {

// Queries of a long sentence are taken in blocks, so that the matrix stays small.
constexpr int64_t kQueryBlock = 64;

// A copy of some rows and columns with rows padded by zeros to whole vectors.
template <class T>
struct Block {
  std::vector<T> values;
  int64_t stride = 0;

  void resize(int64_t rows, int64_t cols) {
    stride = padded<T>(cols);
    values.resize(static_cast<size_t>(rows * stride));
  }
  void clear(int64_t rows, int64_t cols) {
    resize(rows, cols);
    std::ranges::fill(values, T{0});
  }
  void copy(Columns<const T> from, int64_t first, int64_t rows, int64_t cols) {
    resize(rows, cols);
    for (int64_t i = 0; i < rows; ++i) {
      const T* in = from.data + (first + i) * from.stride;
      T* out = row(i);
      for (int64_t j = 0; j < cols; ++j) out[j] = in[j];
      for (int64_t j = cols; j < stride; ++j) out[j] = 0;
    }
  }
  // The transpose of a copied block with `rows` rows and `cols` columns.
  void transpose(const Block& from, int64_t rows, int64_t cols) {
    resize(cols, rows);
    for (int64_t j = 0; j < cols; ++j) {
      T* out = row(j);
      for (int64_t i = 0; i < rows; ++i) out[i] = from.row(i)[j];
      for (int64_t i = rows; i < stride; ++i) out[i] = 0;
    }
  }
  T* row(int64_t i) { return values.data() + i * stride; }
  const T* row(int64_t i) const { return values.data() + i * stride; }
};

template <class T>
void store(const Block<T>& from, int64_t rows, int64_t cols, Columns<T> to, int64_t first,
           Fold fold) {
  for (int64_t i = 0; i < rows; ++i) {
    const T* in = from.row(i);
    fold_row(to.data + (first + i) * to.stride, cols, fold, [=](int64_t j) { return in[j]; });
  }
}

template <class T>
void product(int64_t m, int64_t n, int64_t k, const Block<T>& A, const Block<T>& B, Block<T>& C,
             bool add = false) {
  tile_product<T>(m, padded<T>(n), k, A.row(0), A.stride, B.row(0), B.stride, C.row(0), C.stride,
                  add);
}

// One head of one sentence.
template <class T>
struct Job {
  const Heads<T>& in;
  int64_t sentence, head;
  int64_t first_query, queries, first_key, keys;
  T scale;

  Job(const Heads<T>& heads, int64_t index)
      : in(heads), sentence(index / heads.heads), head(index % heads.heads),
        first_query(heads.query_offsets[sentence]),
        queries(heads.query_offsets[sentence + 1] - first_query),
        first_key(heads.key_offsets[sentence]), keys(heads.key_offsets[sentence + 1] - first_key),
        scale(static_cast<T>(1 / std::sqrt(static_cast<double>(heads.size)))) {}

  Columns<const T> of(Columns<const T> all) const {
    return {all.data + head * in.size, all.stride};
  }
  // How many keys query i of the sentence may look at.
  int64_t visible(int64_t i) const { return in.look == Look::back ? std::min(i + 1, keys) : keys; }
  int64_t dropout_row_of(int64_t i) const { return (first_query + i) * in.heads + head; }
};

// Rows of scores become rows of weights; returns nothing outside what each query may see.
template <class T>
void normalise(const Job<T>& job, int64_t block, int64_t rows, Block<T>& S, T* log_sums) {
  for (int64_t i = 0; i < rows; ++i) {
    T* s = S.row(i);
    const int64_t n = job.visible(block + i);
    T top = -std::numeric_limits<T>::infinity(), sum = 0;
#pragma omp simd reduction(max : top)
    for (int64_t j = 0; j < n; ++j) {
      s[j] *= job.scale;
      top = std::max(top, s[j]);
    }
#pragma omp simd reduction(+ : sum)
    for (int64_t j = 0; j < n; ++j) {
      s[j] = math::exp(s[j] - top);
      sum += s[j];
    }
    const T by = 1 / sum;
    for (int64_t j = 0; j < n; ++j) s[j] *= by;
    for (int64_t j = n; j < S.stride; ++j) s[j] = 0;
    if (log_sums)
      log_sums[(job.first_query + block + i) * job.in.heads + job.head] = top + std::log(sum);
  }
}

template <class T>
void drop(const Job<T>& job, int64_t block, int64_t rows, const DropoutMask& mask, Block<T>& A) {
  std::vector<T> keep(static_cast<size_t>(job.keys));
  for (int64_t i = 0; i < rows; ++i) {
    dropout_row(mask, job.dropout_row_of(block + i), job.keys, keep.data());
    for (int64_t j = 0; j < job.keys; ++j) A.row(i)[j] *= keep[static_cast<size_t>(j)];
  }
}

// Products of one head's numbers, over all heads.
template <class T>
int64_t work_of(const Heads<T>& in) {
  const int64_t queries = in.query_offsets[in.sentences], keys = in.key_offsets[in.sentences];
  return queries * (keys / std::max<int64_t>(1, in.sentences) + 1) * in.heads * in.size;
}

template <class T>
struct Scratch {
  Block<T> q, k, kt, v, vt, s, y, dy, dp, turned, dq, dk, dv;
};

template <class T>
void attend(const Job<T>& job, const DropoutMask& mask, Columns<T> y, T* log_sums, T* weights,
            Scratch<T>& w) {
  const int64_t d = job.in.size, S = job.keys;
  w.k.copy(job.of(job.in.k), job.first_key, S, d);
  w.kt.transpose(w.k, S, d);
  w.v.copy(job.of(job.in.v), job.first_key, S, d);
  for (int64_t block = 0; block < job.queries; block += kQueryBlock) {
    const int64_t n = std::min(kQueryBlock, job.queries - block);
    w.q.copy(job.of(job.in.q), job.first_query + block, n, d);
    w.s.resize(n, S);
    product(n, S, d, w.q, w.kt, w.s);  // q kᵀ
    normalise(job, block, n, w.s, log_sums);
    if (weights)
      for (int64_t i = 0; i < n; ++i) std::copy_n(w.s.row(i), S, weights + (block + i) * S);
    if (!y.data) continue;
    if (job.in.dropout.on()) drop(job, block, n, mask, w.s);
    w.y.resize(n, d);
    product(n, d, S, w.s, w.v, w.y);  // Σ_j a_ij v_j
    store(w.y, n, d, Columns<T>{y.data + job.head * d, y.stride}, job.first_query + block,
          Fold::set);
  }
}

}  // namespace

template <class T>
void attention(Cpu, const Heads<T>& in, Columns<T> y, T* log_sums, T* weights) {
  const DropoutMask mask(in.dropout);
  std::vector<int64_t> starts(static_cast<size_t>(in.sentences * in.heads));
  int64_t start = 0;
  for (int64_t b = 0; b < in.sentences; ++b)
    for (int64_t h = 0; h < in.heads; ++h) {
      starts[static_cast<size_t>(b * in.heads + h)] = start;
      start += int64_t{in.query_offsets[b + 1] - in.query_offsets[b]} *
               (in.key_offsets[b + 1] - in.key_offsets[b]);
    }
#pragma omp parallel if (work_of(in) > kWorthThreads)
  {
    Scratch<T> scratch;
#pragma omp for schedule(dynamic, 8)
    for (int64_t i = 0; i < in.sentences * in.heads; ++i)
      attend(Job<T>(in, i), mask, y, log_sums,
             weights ? weights + starts[static_cast<size_t>(i)] : nullptr, scratch);
  }
}

namespace {

// The weights again, from the scores and log Σ exp.
template <class T>
void recompute(const Job<T>& job, int64_t block, int64_t rows, const T* log_sums, Block<T>& S) {
  for (int64_t i = 0; i < rows; ++i) {
    T* s = S.row(i);
    const int64_t n = job.visible(block + i);
    const T log_sum = log_sums[(job.first_query + block + i) * job.in.heads + job.head];
    for (int64_t j = 0; j < n; ++j) s[j] = math::exp(s[j] * job.scale - log_sum);
    for (int64_t j = n; j < S.stride; ++j) s[j] = 0;
  }
}

// dS from A and dA: a (da − ⟨a, da⟩) / √d_k, where ⟨a, da⟩ = ⟨y, dy⟩ also with dropout.
template <class T>
void score_gradient(const Job<T>& job, int64_t rows, const Block<T>& A, const Block<T>& y,
                    const Block<T>& dy, Block<T>& dA) {
  for (int64_t i = 0; i < rows; ++i) {
    T dot = 0;
#pragma omp simd reduction(+ : dot)
    for (int64_t j = 0; j < job.in.size; ++j) dot += y.row(i)[j] * dy.row(i)[j];
    const T* a = A.row(i);
    T* da = dA.row(i);
    for (int64_t j = 0; j < A.stride; ++j) da[j] = a[j] * (da[j] - dot) * job.scale;
  }
}

template <class T>
void attend_back(const Job<T>& job, const DropoutMask& mask, Columns<const T> y,
                 Columns<const T> dy, const T* log_sums, const HeadsGrad<T>& out, Scratch<T>& w) {
  const int64_t d = job.in.size, S = job.keys;
  w.k.copy(job.of(job.in.k), job.first_key, S, d);
  w.kt.transpose(w.k, S, d);
  w.v.copy(job.of(job.in.v), job.first_key, S, d);
  w.vt.transpose(w.v, S, d);
  w.dk.clear(S, d);
  w.dv.clear(S, d);
  for (int64_t block = 0; block < job.queries; block += kQueryBlock) {
    const int64_t n = std::min(kQueryBlock, job.queries - block), first = job.first_query + block;
    w.q.copy(job.of(job.in.q), first, n, d);
    w.y.copy(job.of(y), first, n, d);
    w.dy.copy(job.of(dy), first, n, d);
    w.s.resize(n, S);
    product(n, S, d, w.q, w.kt, w.s);
    recompute(job, block, n, log_sums, w.s);
    w.dp.resize(n, S);
    product(n, S, d, w.dy, w.vt, w.dp);  // dA = dy vᵀ
    if (job.in.dropout.on()) {
      drop(job, block, n, mask, w.dp);
      Block<T> dropped = w.s;
      drop(job, block, n, mask, dropped);
      w.turned.transpose(dropped, n, S);
    } else {
      w.turned.transpose(w.s, n, S);
    }
    product(S, d, n, w.turned, w.dy, w.dv, true);  // dv = Aᵀ dy
    score_gradient(job, n, w.s, w.y, w.dy, w.dp);
    w.dq.resize(n, d);
    product(n, d, S, w.dp, w.k, w.dq);  // dq = dS k
    store(w.dq, n, d, Columns<T>{out.dq.data + job.head * d, out.dq.stride}, first, out.fold_q);
    w.turned.transpose(w.dp, n, S);
    product(S, d, n, w.turned, w.q, w.dk, true);  // dk = dSᵀ q
  }
  store(w.dk, S, d, Columns<T>{out.dk.data + job.head * d, out.dk.stride}, job.first_key,
        out.fold_kv);
  store(w.dv, S, d, Columns<T>{out.dv.data + job.head * d, out.dv.stride}, job.first_key,
        out.fold_kv);
}

}  // namespace

template <class T>
void attention_grad(Cpu, const Heads<T>& in, Columns<const T> y, Columns<const T> dy,
                    const T* log_sums, const HeadsGrad<T>& out) {
  const DropoutMask mask(in.dropout);
#pragma omp parallel if (work_of(in) > kWorthThreads)
  {
    Scratch<T> scratch;
#pragma omp for schedule(dynamic, 8)
    for (int64_t i = 0; i < in.sentences * in.heads; ++i)
      attend_back(Job<T>(in, i), mask, y, dy, log_sums, out, scratch);
  }
}

#define FOVEA_INSTANTIATE(T)                                                                       \
  template void attention(Cpu, const Heads<T>&, Columns<T>, T*, T*);                               \
  template void attention_grad(Cpu, const Heads<T>&, Columns<const T>, Columns<const T>, const T*, \
                               const HeadsGrad<T>&);
FOVEA_INSTANTIATE(float)
FOVEA_INSTANTIATE(double)
#undef FOVEA_INSTANTIATE

}  // namespace fovea::kernel
