#include <omp.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "gemm/small_gemm.h"
#include "ops/attention_kernel.h"
#include "ops/dropout_mask.h"
#include "ops/vector_math.h"

namespace fovea::kernel {
namespace {

// Note [Queries in lanes]
// The scores and weights of one head of one sentence are a matrix [keys, queries]. Its rows are
// padded to whole vector registers. So a sum over keys is a sum of vectors, and a sentence shorter
// than a vector costs as much as one vector. A lane is one query. The unused lanes compute on zeros
// and are never stored.

// If a sentence is longer, its queries are processed in blocks of this size, so that the matrix
// stays small.
constexpr int64_t kQueryBlock = 64;

// A matrix whose rows are padded to whole vector registers.
template <class T>
struct Block {
  std::vector<T> values;
  int64_t stride = 0;

  void resize(int64_t rows, int64_t cols) {
    stride = padded<T>(cols);
    if (std::ssize(values) < rows * stride) values.resize(static_cast<size_t>(rows * stride));
  }
  T* row(int64_t i) { return values.data() + i * stride; }
  StridedMatrix<T> all() { return {values.data(), stride}; }
  StridedMatrix<const T> transposed() const { return {values.data(), 1, stride}; }  // its transpose
  operator StridedMatrix<const T>() const { return {values.data(), stride}; }

  // Stores the transpose of `from`. REQUIRES: the rows of `from` are readable up to a whole vector.
  void transpose(StridedMatrix<const T> from, int64_t rows, int64_t cols) {
    resize(padded<T>(cols), rows);
    for (int64_t i = 0; i < rows; i += kLanes<T>)
      for (int64_t j = 0; j < cols; j += kLanes<T>)
        tile_transpose<T>(rows - i, {from.data + i * from.row + j, from.row}, {row(j) + i, stride});
  }
};

// What one iteration of a parallel loop computes: one head of one sentence.
template <class T>
struct Job {
  const AttentionInput<T>& in;
  int64_t sentence, head;
  int64_t first_query, queries, first_key, keys;
  T scale;

  Job(const AttentionInput<T>& heads, int64_t index)
      : in(heads), sentence(index / heads.heads), head(index % heads.heads),
        first_query(heads.query_offsets[sentence]),
        queries(heads.query_offsets[sentence + 1] - first_query),
        first_key(heads.key_offsets[sentence]), keys(heads.key_offsets[sentence + 1] - first_key),
        scale(static_cast<T>(1 / std::sqrt(static_cast<double>(heads.size)))) {}

  template <class C>
  StridedMatrix<C> rows(StridedRows<C> all, int64_t first) const {
    return {all.data + first * all.stride + head * in.size, all.stride};
  }
  // If lane 0 holds query i, the first lane whose query may attend to key j.
  int first_lane(int64_t j, int64_t i) const {
    return in.mask == AttentionMask::causal
               ? static_cast<int>(std::clamp<int64_t>(j - i, 0, kQueryBlock))
               : 0;
  }
  int64_t dropout_row_of(int64_t i) const { return (first_query + i) * in.heads + head; }
  int64_t log_sum_of(int64_t i) const { return (first_query + i) * in.heads + head; }
};

// The jobs of this thread: all heads of the sentences whose words this thread also processes in
// other kernels (Note [Halves]).
template <class T>
std::pair<int64_t, int64_t> jobs_of_thread(const AttentionInput<T>& in) {
  const int64_t threads = omp_get_num_threads(), me = omp_get_thread_num();
  const int32_t *begin = in.query_offsets, *end = begin + in.sentences;
  const auto job_at = [&](int64_t thread) {
    return (std::lower_bound(begin, end, *end * thread / threads) - begin) * in.heads;
  };
  return {job_at(me), me + 1 == threads ? in.sentences * in.heads : job_at(me + 1)};
}

// The rows of one head as an operand of products. If a row is not a whole number of vectors, the
// rows are copied and padded.
template <class T>
struct HeadRows {
  Block<T> copy = {};

  StridedMatrix<const T> of(StridedMatrix<const T> from, int64_t rows, int64_t cols) {
    if (cols % kLanes<T> == 0) return from;
    copy.resize(rows, cols);
    for (int64_t i = 0; i < rows; ++i) {
      std::copy_n(from.data + i * from.row, cols, copy.row(i));
      std::fill(copy.row(i) + cols, copy.row(i) + copy.stride, T{0});
    }
    return copy;
  }
};

// to = A B for OutputMode::set, to += A B for OutputMode::add. If the rows of `to` are not whole
// vectors, the product is computed in `spare` and then copied.
template <class T>
void product_into(StridedMatrix<T> to, int64_t m, int64_t n, int64_t k, StridedMatrix<const T> A,
                  StridedMatrix<const T> B, OutputMode fold, Block<T>& spare) {
  if (n % kLanes<T> == 0)
    return tile_product<T>(m, n, k, A, B, to,
                           fold == OutputMode::add ? SumKind::onto : SumKind::fresh);
  spare.resize(m, n);
  tile_product<T>(m, spare.stride, k, A, B, spare.all());
  for (int64_t i = 0; i < m; ++i) {
    const T* from = spare.row(i);
    fold_row(to.data + i * to.row, n, fold, [=](int64_t j) { return from[j]; });
  }
}

// Turns scores into weights with a softmax over the keys. If a query may not attend to a key, the
// weight is 0.
template <class T>
void normalise(const Job<T>& job, int64_t block, int64_t queries, Block<T>& S, T* log_sums) {
  constexpr int kLane = static_cast<int>(kLanes<T>);
  constexpr T kNone = -std::numeric_limits<T>::infinity();
  for (int64_t v = 0; v < queries; v += kLane) {
    T top[kLane], sum[kLane] = {};
    std::fill_n(top, kLane, kNone);
    for (int64_t j = 0; j < job.keys; ++j) {
      T* s = S.row(j) + v;
      const int first = job.first_lane(j, block + v);
#pragma omp simd
      for (int l = 0; l < kLane; ++l) {
        s[l] = l >= first ? s[l] * job.scale : kNone;
        top[l] = s[l] > top[l] ? s[l] : top[l];
      }
    }
    for (int64_t j = 0; j < job.keys; ++j) {
      T* s = S.row(j) + v;
#pragma omp simd
      for (int l = 0; l < kLane; ++l) {
        s[l] = math::exp(s[l] - top[l]);
        sum[l] += s[l];
      }
    }
    for (int64_t l = 0; log_sums && l < std::min<int64_t>(kLane, queries - v); ++l)
      log_sums[job.log_sum_of(block + v + l)] = top[l] + std::log(sum[l]);
    for (int l = 0; l < kLane; ++l) sum[l] = 1 / sum[l];
    for (int64_t j = 0; j < job.keys; ++j) {
      T* s = S.row(j) + v;
      const int first = job.first_lane(j, block + v);
#pragma omp simd
      for (int l = 0; l < kLane; ++l)
        s[l] = l >= first ? s[l] * sum[l] : T{0};  // exp(−∞) is e^-87 here, not 0
    }
  }
}

// The buffers of a thread. s holds scores, then weights; ds holds gradients of weights, then of
// scores; `factors` holds dropout factors. qt, dyt and factors_t hold transposed matrices.
template <class T>
struct Scratch {
  HeadRows<T> q, k, v, dy;
  Block<T> qt, dyt, s, ds, dropped, factors, factors_t, spare;
  std::vector<T> distances;  // scores of a head, see line_of_distances()
};

// The distance scores of a job's head, multiplied by √d_k because they are added before the
// scaling: entry keys − 1 + i − j for query i and key j.
template <class T>
void line_of_distances(const Job<T>& job, std::vector<T>& line) {
  const DistanceScores<T>& scores = job.in.distances;
  if (!scores.data) return;
  line.resize(static_cast<size_t>(job.queries + job.keys));
  for (int64_t x = 0; x + 1 < job.queries + job.keys; ++x) {
    const int64_t distance = job.keys - 1 - x;  // j − i
    line[static_cast<size_t>(x)] =
        scores.data[(scores.reach + distance) * job.in.heads + job.head] / job.scale;
  }
}

// Sets `to` to the weights `from` after dropout. Both may be the same block.
template <class T>
void drop(const Job<T>& job, int64_t block, int64_t queries, const DropoutMask& mask,
          Block<T>& from, Block<T>& to, Scratch<T>& w) {
  w.factors.resize(queries, job.keys);
  for (int64_t i = 0; i < queries; ++i)
    dropout_row(mask, job.dropout_row_of(block + i), job.keys, w.factors.row(i));
  w.factors_t.transpose(w.factors, queries, job.keys);
  to.resize(job.keys, queries);
  for (int64_t j = 0; j < job.keys; ++j)
    for (int64_t i = 0; i < queries; ++i) to.row(j)[i] = from.row(j)[i] * w.factors_t.row(j)[i];
}

// An estimate of the scalar multiplications in one matrix product (such as q kᵀ) over all heads.
template <class T>
int64_t work_of(const AttentionInput<T>& in) {
  const int64_t queries = in.query_offsets[in.sentences], keys = in.key_offsets[in.sentences];
  return queries * (keys / std::max<int64_t>(1, in.sentences) + 1) * in.heads * in.size;
}

// w.s = k qᵀ, plus distance scores, for the queries from `block` on.
template <class T>
void scores(const Job<T>& job, StridedMatrix<const T> q, int64_t block, int64_t queries,
            Scratch<T>& w) {
  w.qt.transpose(q, queries, job.in.size);
  w.s.resize(job.keys, queries);
  tile_product<T>(job.keys, w.s.stride, job.in.size, job.rows(job.in.k, job.first_key), w.qt,
                  w.s.all());
  if (!job.in.distances.data) return;
  for (int64_t j = 0; j < job.keys; ++j) {
    T* s = w.s.row(j);
    const T* distance = w.distances.data() + job.keys - 1 + block - j;
    for (int64_t i = 0; i < queries; ++i) s[i] += distance[i];
  }
}

template <class T>
void attend(const Job<T>& job, const DropoutMask& mask, StridedRows<T> y, T* log_sums, T* weights,
            Scratch<T>& w) {
  const int64_t d = job.in.size, S = job.keys;
  const StridedMatrix<const T> v = w.v.of(job.rows(job.in.v, job.first_key), S, d);
  line_of_distances(job, w.distances);
  for (int64_t block = 0; block < job.queries; block += kQueryBlock) {
    const int64_t n = std::min(kQueryBlock, job.queries - block), first = job.first_query + block;
    scores(job, w.q.of(job.rows(job.in.q, first), n, d), block, n, w);
    normalise(job, block, n, w.s, log_sums);
    for (int64_t i = 0; weights && i < n; ++i)
      for (int64_t j = 0; j < S; ++j) weights[(block + i) * S + j] = w.s.row(j)[i];
    if (!y.data) continue;
    if (job.in.dropout.on()) drop(job, block, n, mask, w.s, w.s, w);
    product_into(job.rows(y, first), n, d, S, w.s.transposed(), v, OutputMode::set,
                 w.spare);  // Σ_j a_ij v_j
  }
}

}  // namespace

template <class T>
void attention(Cpu, const AttentionInput<T>& in, StridedRows<T> y, T* log_sums, T* weights) {
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
    const auto [first, last] = jobs_of_thread(in);
    for (int64_t i = first; i < last; ++i)
      attend(Job<T>(in, i), mask, y, log_sums,
             weights ? weights + starts[static_cast<size_t>(i)] : nullptr, scratch);
  }
}

namespace {

// Recomputes the weights from the scores and the stored log Σ exp.
template <class T>
void recompute(const Job<T>& job, int64_t block, int64_t queries, const T* log_sums, Block<T>& S) {
  constexpr int kLane = static_cast<int>(kLanes<T>);
  for (int64_t v = 0; v < queries; v += kLane) {
    T log_sum[kLane] = {};
    for (int64_t l = 0; l < std::min<int64_t>(kLane, queries - v); ++l)
      log_sum[l] = log_sums[job.log_sum_of(block + v + l)];
    for (int64_t j = 0; j < job.keys; ++j) {
      T* s = S.row(j) + v;
      const int first = job.first_lane(j, block + v);
#pragma omp simd
      for (int l = 0; l < kLane; ++l) {
        const T weight = math::exp(s[l] * job.scale - log_sum[l]);
        s[l] = l >= first ? weight : T{0};
      }
    }
  }
}

// Computes dS from A and dA: a (da − ⟨a, da⟩) / √d_k.
template <class T>
void score_gradient(const Job<T>& job, int64_t queries, Block<T>& A, Block<T>& dA) {
  constexpr int kLane = static_cast<int>(kLanes<T>);
  for (int64_t v = 0; v < queries; v += kLane) {
    T dot[kLane] = {};
    for (int64_t j = 0; j < job.keys; ++j) {
      const T *a = A.row(j) + v, *da = dA.row(j) + v;
#pragma omp simd
      for (int l = 0; l < kLane; ++l) dot[l] += a[l] * da[l];
    }
    for (int64_t j = 0; j < job.keys; ++j) {
      const T* a = A.row(j) + v;
      T* da = dA.row(j) + v;
#pragma omp simd
      for (int l = 0; l < kLane; ++l) da[l] = a[l] * (da[l] - dot[l]) * job.scale;
    }
  }
}

// Adds dS / (1 / √d_k) of a block of queries to the gradient of the job's distance scores: entry
// reach + j − i.
template <class T>
void add_distances(const Job<T>& job, int64_t block, int64_t queries, Block<T>& dS, T* to) {
  for (int64_t j = 0; j < job.keys; ++j) {
    const T* ds = dS.row(j);
    T* const at = to + job.in.distances.reach + j - block;
    for (int64_t i = 0; i < queries; ++i) at[-i] += ds[i] / job.scale;
  }
}

// `distances` receives the gradient of the job's distance scores, or is absent.
template <class T>
void attend_backward(const Job<T>& job, const DropoutMask& mask, StridedRows<const T> dy_of,
                     const T* log_sums, const AttentionGrad<T>& out, T* distances, Scratch<T>& w) {
  const int64_t d = job.in.size, S = job.keys;
  const StridedMatrix<const T> k = w.k.of(job.rows(job.in.k, job.first_key), S, d);
  const StridedMatrix<T> dk = job.rows(out.dk, job.first_key), dv = job.rows(out.dv, job.first_key);
  line_of_distances(job, w.distances);
  for (int64_t block = 0; block == 0 || block < job.queries; block += kQueryBlock) {
    const int64_t n = std::min(kQueryBlock, job.queries - block), first = job.first_query + block;
    const OutputMode fold = block ? OutputMode::add : out.fold_kv;
    const StridedMatrix<const T> q = w.q.of(job.rows(job.in.q, first), n, d);
    const StridedMatrix<const T> dy = w.dy.of(job.rows(dy_of, first), n, d);
    scores(job, q, block, n, w);
    recompute(job, block, n, log_sums, w.s);
    w.dyt.transpose(dy, n, d);
    w.ds.resize(S, n);
    tile_product<T>(S, w.ds.stride, d, job.rows(job.in.v, job.first_key), w.dyt,
                    w.ds.all());  // dA = dy vᵀ
    const bool drops = job.in.dropout.on();
    if (drops) {
      drop(job, block, n, mask, w.ds, w.ds, w);
      drop(job, block, n, mask, w.s, w.dropped, w);
    }
    product_into<T>(dv, S, d, n, drops ? w.dropped : w.s, dy, fold, w.spare);  // dv = Aᵀ dy
    score_gradient(job, n, w.s, w.ds);
    if (distances) add_distances(job, block, n, w.ds, distances);
    product_into(job.rows(out.dq, first), n, d, S, w.ds.transposed(), k, out.fold_q,
                 w.spare);                                 // dq = dS k
    product_into<T>(dk, S, d, n, w.ds, q, fold, w.spare);  // dk = dSᵀ q
  }
}

}  // namespace

namespace {

// Adds the gradients of the distance scores of all sentences, in their order.
template <class T>
void sum_parts(const AttentionInput<T>& in, const std::vector<T>& parts,
               const AttentionGrad<T>& out) {
  const int64_t width = 2 * in.distances.reach + 1;
  for (int64_t x = 0; x < width; ++x)
    for (int64_t h = 0; h < in.heads; ++h) {
      T sum = 0;
      for (int64_t b = 0; b < in.sentences; ++b)
        sum += parts[static_cast<size_t>((b * in.heads + h) * width + x)];
      fold_into(out.distances[x * in.heads + h], out.fold_distances, sum);
    }
}

}  // namespace

template <class T>
void attention_grad(Cpu, const AttentionInput<T>& in, StridedRows<const T> /*y*/,
                    StridedRows<const T> dy, const T* log_sums, const AttentionGrad<T>& out) {
  const DropoutMask mask(in.dropout);
  const int64_t width = 2 * in.distances.reach + 1, jobs = in.sentences * in.heads;
  std::vector<T> parts(out.distances ? static_cast<size_t>(jobs * width) : 0);  // [jobs, width]
#pragma omp parallel if (work_of(in) > kWorthThreads)
  {
    Scratch<T> scratch;
    const auto [first, last] = jobs_of_thread(in);
    for (int64_t i = first; i < last; ++i)
      attend_backward(Job<T>(in, i), mask, dy, log_sums, out,
                      out.distances ? parts.data() + i * width : nullptr, scratch);
  }
  if (out.distances) sum_parts(in, parts, out);
}

#define FOVEA_INSTANTIATE(T)                                                        \
  template void attention(Cpu, const AttentionInput<T>&, StridedRows<T>, T*, T*);   \
  template void attention_grad(Cpu, const AttentionInput<T>&, StridedRows<const T>, \
                               StridedRows<const T>, const T*, const AttentionGrad<T>&);
FOVEA_INSTANTIATE(float)
FOVEA_INSTANTIATE(double)
#undef FOVEA_INSTANTIATE

}  // namespace fovea::kernel
