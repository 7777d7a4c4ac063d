#include <climits>

#include "ops/ragged_attention_kernel.h"
#include "tensor/cuda.h"
#include "tensor/memory.h"
#include "tensor/pack.cuh"
#include "tensor/warp.cuh"

namespace fovea::kernel {
namespace {

constexpr int kThreads = 128, kWarps = kThreads / kWarp, kIndexWarps = 8;
constexpr int kWords = 16;             // number of words whose sums one thread keeps in registers
constexpr int64_t kFewQueries = 1024;  // for more queries, index_queries() groups them

// tanh with relative error below 5e-7, without branches. Near 0 it is an odd polynomial, fitted for
// the smallest relative error. Elsewhere it is 1 − 2 / (e²ˣ + 1).
__device__ float tanh_of(float x) {
  const float a = fabsf(x), u = x * x;
  float p = 0.0151953492f;
  p = p * u - 0.0519478843f;
  p = p * u + 0.133081749f;
  p = p * u - 0.333323419f;
  const float small = p * u * x + x;
  float e, inverse;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(e) : "f"(a * 2.88539008f));  // 2 / ln 2
  asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(inverse) : "f"(e + 1.0f));
  return a < 0.625f ? small : copysignf(1.0f - 2.0f * inverse, x);
}

// tanh with absolute error below 1e-6, accurate enough for operands rounded to bf16. If t = tanh(x)
// is near 1, 1 − t² has the same absolute error.
__device__ float short_tanh_of(float x) {
  float e, inverse;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(e) : "f"(x * 2.88539008f));
  asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(inverse) : "f"(e + 1.0f));
  return 1.0f - 2.0f * inverse;
}
template <class K>
__device__ float tanh_with(float x) {
  return std::is_same_v<K, bf16> ? short_tanh_of(x) : tanh_of(x);
}

__global__ void count_words(RaggedIndex ragged, int32_t* n) {
  const int64_t i = int64_t{blockIdx.x} * kThreads + threadIdx.x;
  if (i < ragged.queries) n[i] = static_cast<int32_t>(ragged.words(i));
}

__global__ void words_as(RaggedIndex ragged, int64_t most, float* n) {
  const int64_t i = int64_t{blockIdx.x} * kThreads + threadIdx.x;
  if (i < ragged.queries) n[i] = static_cast<float>(min(ragged.words(i), most));
}

enum class Score { dot, additive };

// The number of words whose scores with a query one warp computes. It reads the query once.
constexpr int kWarpWords = 4;
template <Score kScore, int kWide, class K>
__global__ void __launch_bounds__(kThreads)
    score_words(RaggedIndex ragged, Matrix<const float> q, Matrix<const K> k, const float* v,
                Matrix<float> e, OutputMode fold) {
  const int64_t i = blockIdx.x;
  const int first =
      (static_cast<int>(blockIdx.y) * kWarps + static_cast<int>(threadIdx.y)) * kWarpWords;
  const int lane = static_cast<int>(threadIdx.x), cols = static_cast<int>(q.cols);
  if (first >= e.cols) return;
  const int words = static_cast<int>(ragged.words(i)) - first;  // words from `first` on
  const float* query = q.row(i);
  const K* key = k.row(ragged.first(i) + first);
  float sum[kWarpWords] = {};
  for (int a = lane * kWide; words > 0 && a < cols; a += kWarp * kWide) {
    Pack<kWide> y[kWarpWords];
#pragma unroll
    for (int m = 0; m < kWarpWords; ++m)
      y[m] = m < words ? load<kWide>(key + m * k.cols + a) : Pack<kWide>{};
    const Pack<kWide> x = load<kWide>(query + a);
    const Pack<kWide> by = kScore == Score::dot ? Pack<kWide>{} : load<kWide>(v + a);
#pragma unroll
    for (int m = 0; m < kWarpWords; ++m)
#pragma unroll
      for (int w = 0; w < kWide; ++w)
        sum[m] += kScore == Score::dot ? x.at[w] * y[m].at[w]
                                       : by.at[w] * tanh_with<K>(x.at[w] + y[m].at[w]);
  }
#pragma unroll
  for (int m = 0; m < kWarpWords; ++m) {
    const float total = across_warp(sum[m], WarpSum{});
    if (lane != m || first + m >= e.cols) continue;
    float& to = e.row(i)[first + m];
    if (m < words)
      fold_into(to, fold, total);
    else if (fold == OutputMode::set)
      to = 0;
  }
}

template <Score kScore, class K>
void score(Cuda on, const RaggedIndex& ragged, Matrix<const float> q, Matrix<const K> k,
           const float* v, Matrix<float> e, OutputMode fold) {
  constexpr int kWide = 16 / sizeof(K);
  if (e.size() == 0) return;
  const dim3 blocks(static_cast<unsigned>(ragged.queries), blocks_for(e.cols, kWarps * kWarpWords));
  auto* kernel = q.cols % kWide == 0 && at_packs<kWide>(q.data, k.data, v)
                     ? score_words<kScore, kWide, K>
                     : score_words<kScore, 1, K>;
  kernel<<<blocks, dim3(kWarp, kWarps), 0, stream(on)>>>(ragged, q, k, v, e, fold);
}

// q_i = Σ_j e_ij k_j. One thread computes kWide columns of q_i for one query i. It skips words of
// weight 0: if attention is hard or local, most weights are 0.
template <int kWide, class K>
__global__ void __launch_bounds__(kThreads)
    blend_words(RaggedIndex ragged, Matrix<const float> e, Matrix<const K> k, Matrix<float> q,
                OutputMode fold, Matrix<bf16> rounded) {
  constexpr int kAhead = 8;
  const int64_t i = blockIdx.x, a = (int64_t{blockIdx.y} * kThreads + threadIdx.x) * kWide;
  const int words = static_cast<int>(ragged.words(i)), lane = static_cast<int>(threadIdx.x) % kWarp;
  const bool here = a < q.cols;
  const K* from = k.row(ragged.first(i)) + a;
  Pack<kWide> sum{};
  for (int run = 0; run < words; run += kWarp) {  // each lane loads one weight of the run
    const float own = run + lane < words ? e.row(i)[run + lane] : 0.0f;
    for (int first = 0; first < min(words - run, kWarp); first += kAhead) {
      float weight[kAhead];
      Pack<kWide> value[kAhead];
#pragma unroll
      for (int m = 0; m < kAhead; ++m) weight[m] = __shfl_sync(~0u, own, first + m);
#pragma unroll
      for (int m = 0; m < kAhead; ++m)
        value[m] = here && weight[m] != 0 ? load<kWide>(from + int64_t{run + first + m} * k.cols)
                                          : Pack<kWide>{};
#pragma unroll
      for (int m = 0; m < kAhead; ++m)
#pragma unroll
        for (int w = 0; w < kWide; ++w) sum.at[w] += weight[m] * value[m].at[w];
    }
  }
  if (!here) return;
  fold_pack(q.row(i) + a, fold, sum);
  if (rounded.data) store(rounded.row(i) + a, sum);
}

// The queries of each sentence in ascending order: sentence b has the queries at[first[b]] …
// at[first[b + 1] − 1]. If `at` is null, each() finds them by a scan of all queries.
struct SentenceQueries {
  const int32_t* sentence;
  int count;
  const int32_t *first, *at;

  // Calls body(i) for each query i of sentence b. Returns whether there are any. REQUIRES: all
  // lanes of a warp call it.
  template <class Body>
  __device__ bool each(int b, Body body) const {
    const int lane = static_cast<int>(threadIdx.x) % kWarp;
    const int begin = at ? first[b] : 0, end = at ? first[b + 1] : count;
    bool any = false;
    for (int n = begin; n < end; n += kWarp) {
      int i = -1;
      if (n + lane < end) i = at ? at[n + lane] : sentence[n + lane] == b ? n + lane : -1;
      for (unsigned found = __ballot_sync(~0u, i >= 0); found; found &= found - 1) {
        body(int64_t{__shfl_sync(~0u, i, __ffs(static_cast<int>(found)) - 1)});
        any = true;
      }
    }
    return any;
  }
};

// Fills SentenceQueries, with one block per sentence. The warps of a block scan equal ranges of the
// queries. Each first counts its queries of the sentence, which says where in `at` each writes.
__global__ void index_queries(const int32_t* sentence, int count, int32_t* first, int32_t* at) {
  __shared__ int own[kIndexWarps], smaller[kIndexWarps];
  const int b = static_cast<int>(blockIdx.x), lane = static_cast<int>(threadIdx.x) % kWarp;
  const int warp = static_cast<int>(threadIdx.x) / kWarp;
  const int share = (count + kIndexWarps * kWarp - 1) / (kIndexWarps * kWarp) * kWarp;
  const int begin = min(warp * share, count), end = min(begin + share, count);
  auto sentence_of = [&](int i) { return i < end ? sentence[i] : INT_MAX; };

  int mine = 0, before = 0;
  for (int n = begin; n < end; n += kWarp) {
    const int s = sentence_of(n + lane);
    mine += __popc(__ballot_sync(~0u, s == b));
    before += __popc(__ballot_sync(~0u, s < b));
  }
  if (lane == 0) own[warp] = mine, smaller[warp] = before;
  __syncthreads();
  int to = 0;
  for (int w = 0; w < kIndexWarps; ++w) to += smaller[w] + (w < warp ? own[w] : 0);
  if (threadIdx.x == 0) {
    first[b] = to;
    if (blockIdx.x + 1 == gridDim.x) first[b + 1] = count;
  }
  for (int n = begin; n < end; n += kWarp) {
    const bool here = sentence_of(n + lane) == b;
    const unsigned found = __ballot_sync(~0u, here);
    if (here) at[to + __popc(found & ((1u << lane) - 1))] = n + lane;
    to += __popc(found);
  }
}

// A SentenceQueries and the memory of its arrays. `queries` is valid while this object lives.
struct QueryIndex {
  Buffer buffer;
  SentenceQueries queries;

  QueryIndex(Cuda on, const RaggedIndex& ragged)
      : queries{ragged.sentence, static_cast<int>(ragged.queries), nullptr, nullptr} {
    if (ragged.queries <= kFewQueries) return;
    buffer = allocate(
        static_cast<std::size_t>(ragged.sentences + 1 + ragged.queries) * sizeof(int32_t), on);
    int32_t* first = reinterpret_cast<int32_t*>(buffer.get());
    int32_t* at = first + ragged.sentences + 1;
    index_queries<<<static_cast<unsigned>(ragged.sentences), kIndexWarps * kWarp, 0, stream(on)>>>(
        ragged.sentence, queries.count, first, at);
    check_launch("index of queries");
    queries.first = first;
    queries.at = at;
  }
};

// k_j = Σ_i e_ij q_i, in the order of i. One thread computes kWide columns of kWords words of one
// sentence.
template <int kWide>
__global__ void __launch_bounds__(kThreads)
    spread_queries(RaggedIndex ragged, SentenceQueries queries, Matrix<const float> e,
                   Matrix<const float> q, Matrix<float> k, OutputMode fold) {
  const int b = static_cast<int>(blockIdx.x), begin = static_cast<int>(blockIdx.z) * kWords;
  const int words = ragged.offsets[b + 1] - ragged.offsets[b] - begin;  // words from `begin` on
  if (words <= 0) return;
  const int64_t a = (int64_t{blockIdx.y} * kThreads + threadIdx.x) * kWide;
  const bool here = a < k.cols;
  Pack<kWide> sum[kWords] = {};
  const bool any = queries.each(b, [&](int64_t i) {
    const Pack<kWide> from = here ? load<kWide>(q.row(i) + a) : Pack<kWide>{};
    const float* weights = e.row(i) + begin;
#pragma unroll
    for (int m = 0; m < kWords; ++m)
      if (m < words && weights[m] != 0)
#pragma unroll
        for (int w = 0; w < kWide; ++w) sum[m].at[w] += weights[m] * from.at[w];
  });
  if (!here || (!any && fold == OutputMode::add)) return;
  float* to = k.row(ragged.offsets[b] + begin) + a;
#pragma unroll
  for (int m = 0; m < kWords; ++m)
    if (m < words) fold_pack(to + m * k.cols, fold, sum[m]);
}

// One column of kWords adjacent words of a sentence, as one thread holds it.
struct WordChunk {
  float key[kWords], dk[kWords];
  int words;

  template <class K>
  __device__ void read(const K* from, int64_t stride, int count) {
    words = count;
#pragma unroll
    for (int m = 0; m < kWords; ++m) {
      key[m] = m < words ? load<1>(from + m * stride).at[0] : 0.0f;
      dk[m] = 0;
    }
  }
  // Adds a query, whose scores have the gradients `de`, to dk / v and dv. Returns its dq / v.
  template <class K>
  __device__ float flow(float query, const float* de, float& dv) {
    float dq = 0;
#pragma unroll
    for (int m = 0; m < kWords; ++m) {
      if (m >= words) break;
      const float t = tanh_with<K>(query + key[m]), g = de[m] * (1 - t * t);
      dq += g;
      dk[m] += g;
      dv += de[m] * t;
    }
    return dq;
  }
  __device__ void write(float* to, int64_t stride, OutputMode fold, float v) const {
#pragma unroll
    for (int m = 0; m < kWords; ++m)
      if (m < words) fold_into(to[m * stride], fold, v * dk[m]);
  }
};

// The gradients of additive scores: one thread per sentence and column. It processes the words in
// chunks, and for each chunk the queries in order. parts[b] receives the terms of dv of sentence b.
template <class K>
__global__ void __launch_bounds__(kThreads)
    additive_backward(RaggedIndex ragged, SentenceQueries queries, Matrix<const float> q,
                      Matrix<const K> k, const float* v, Matrix<const float> de,
                      AdditiveGrad<float> out, float* parts) {
  const int b = static_cast<int>(blockIdx.x);
  const int64_t A = q.cols, a = int64_t{blockIdx.y} * kThreads + threadIdx.x;
  const int64_t first = ragged.offsets[b];
  const int words = ragged.offsets[b + 1] - ragged.offsets[b];
  const bool here = a < A;
  const float by = here ? v[a] : 0.0f;
  float dv = 0;
  WordChunk chunk;
  for (int begin = 0; begin == 0 || begin < words; begin += kWords) {  // sets dq to 0 if no words
    const int64_t place = (first + begin) * A + a;
    chunk.read(k.data + place, A, here ? min(words - begin, kWords) : 0);
    const OutputMode fold_q = begin == 0 ? out.fold_q : OutputMode::add;
    const bool any = queries.each(b, [&](int64_t i) {
      const float dq = chunk.flow<K>(here ? q.row(i)[a] : 0.0f, de.row(i) + begin, dv);
      if (here && out.dq.data) fold_into(out.dq.row(i)[a], fold_q, by * dq);
    });
    if (out.dk.data && (any || out.fold_k == OutputMode::set))
      chunk.write(out.dk.data + place, A, out.fold_k, by);
  }
  if (parts && here) parts[b * A + a] = dv;
}

// If only dq of additive scores is required: one thread per query and kWide columns.
template <int kWide, class K>
__global__ void __launch_bounds__(kThreads)
    additive_queries_backward(RaggedIndex ragged, Matrix<const float> q, Matrix<const K> k,
                              const float* v, Matrix<const float> de, Matrix<float> dq,
                              OutputMode fold) {
  constexpr int kAhead = 8;
  const int64_t i = blockIdx.x, a = (int64_t{blockIdx.y} * kThreads + threadIdx.x) * kWide;
  const int words = static_cast<int>(ragged.words(i)), lane = static_cast<int>(threadIdx.x) % kWarp;
  const bool here = a < q.cols;
  const K* key = k.row(ragged.first(i)) + a;
  const Pack<kWide> query = here ? load<kWide>(q.row(i) + a) : Pack<kWide>{};
  const Pack<kWide> by = here ? load<kWide>(v + a) : Pack<kWide>{};
  Pack<kWide> sum{};
  for (int run = 0; run < words; run += kWarp) {  // each lane loads de of one word
    const float own = run + lane < words ? de.row(i)[run + lane] : 0.0f;
    for (int first = 0; first < min(words - run, kWarp); first += kAhead) {
      Pack<kWide> x[kAhead];
#pragma unroll
      for (int m = 0; m < kAhead; ++m)
        x[m] = here && run + first + m < words
                   ? load<kWide>(key + int64_t{run + first + m} * k.cols)
                   : Pack<kWide>{};
#pragma unroll
      for (int m = 0; m < kAhead; ++m) {
        const float d = __shfl_sync(~0u, own, first + m);  // past the last word, d is 0
#pragma unroll
        for (int w = 0; w < kWide; ++w) {
          const float t = tanh_with<K>(query.at[w] + x[m].at[w]);
          sum.at[w] += d * (1 - t * t);
        }
      }
    }
  }
  if (!here) return;
#pragma unroll
  for (int w = 0; w < kWide; ++w) sum.at[w] *= by.at[w];
  fold_pack(dq.row(i) + a, fold, sum);
}

// y = Σ of the rows, in an order that depends only on the number of rows.
__global__ void sum_rows(const float* rows, int64_t count, int64_t cols, float* y,
                         OutputMode fold) {
  constexpr int kSums = 16;
  __shared__ float sums[kSums][kWarp];
  const int64_t a = int64_t{blockIdx.x} * kWarp + threadIdx.x;
  float sum = 0;
  if (a < cols)
#pragma unroll 8
    for (int64_t b = threadIdx.y; b < count; b += kSums) sum += rows[b * cols + a];
  sums[threadIdx.y][threadIdx.x] = sum;
  __syncthreads();
  if (threadIdx.y > 0 || a >= cols) return;
  for (int s = 1; s < kSums; ++s) sum += sums[s][threadIdx.x];
  fold_into(y[a], fold, sum);
}

// softmax over the range [low[i], high[i]) of each row i, with one warp per row.
__global__ void softmax_ranges(Matrix<const float> e, const int32_t* low, const int32_t* high,
                               Matrix<float> y) {
  const int64_t i = int64_t{blockIdx.x} * kWarps + threadIdx.y;
  if (i >= e.rows) return;
  const int begin = low[i], end = high[i], cols = static_cast<int>(e.cols);
  const int lane = static_cast<int>(threadIdx.x);
  const float* in = e.row(i);
  float* out = y.row(i);
  float top = -INFINITY;
  for (int j = begin + lane; j < end; j += kWarp) top = fmaxf(top, in[j]);
  top = across_warp(top, WarpMax{});
  double sum = 0;
  for (int j = begin + lane; j < end; j += kWarp) sum += static_cast<double>(expf(in[j] - top));
  const float scale = static_cast<float>(1 / across_warp(sum, WarpSum{}));
  for (int j = lane; j < cols; j += kWarp)
    out[j] = j >= begin && j < end ? expf(in[j] - top) * scale : 0.0f;
}

}  // namespace

void lengths(Cuda on, const RaggedIndex& ragged, int32_t* n) {
  if (ragged.queries == 0) return;
  count_words<<<blocks_for(ragged.queries, kThreads), kThreads, 0, stream(on)>>>(ragged, n);
  check_launch("lengths");
}
template <class T>
void lengths_as(Cuda on, const RaggedIndex& ragged, int64_t most, T* n) {
  if (ragged.queries == 0) return;
  words_as<<<blocks_for(ragged.queries, kThreads), kThreads, 0, stream(on)>>>(ragged, most, n);
  check_launch("lengths");
}

template <class T, class K>
void ragged_dot(Cuda on, const RaggedIndex& ragged, Matrix<const T> q, Matrix<const K> k,
                Matrix<T> e, OutputMode fold) {
  score<Score::dot>(on, ragged, q, k, nullptr, e, fold);
  check_launch("ragged_dot");
}

template <class T, class K>
void sum_over_words(Cuda on, const RaggedIndex& ragged, Matrix<const T> e, Matrix<const K> k,
                    Matrix<T> q, OutputMode fold, Matrix<bf16> rounded) {
  if (q.size() == 0) return;
  const bool wide = q.cols % 4 == 0 && at_fours(q.data) && at_fours(k.data, rounded.data);
  const dim3 blocks(static_cast<unsigned>(ragged.queries),
                    blocks_for(q.cols, kThreads * (wide ? 4 : 1)));
  auto* kernel = wide ? blend_words<4, K> : blend_words<1, K>;
  kernel<<<blocks, kThreads, 0, stream(on)>>>(ragged, e, k, q, fold, rounded);
  check_launch("sum_over_words");
}

template <class T>
void sum_over_queries(Cuda on, const RaggedIndex& ragged, Matrix<const T> e, Matrix<const T> q,
                      Matrix<T> k, OutputMode fold) {
  if (k.size() == 0) return;
  const QueryIndex index(on, ragged);
  const bool wide = k.cols % 4 == 0 && at_fours(q.data, k.data);
  const dim3 blocks(static_cast<unsigned>(ragged.sentences),
                    blocks_for(k.cols, kThreads * (wide ? 4 : 1)), blocks_for(e.cols, kWords));
  auto* kernel = wide ? spread_queries<4> : spread_queries<1>;
  kernel<<<blocks, kThreads, 0, stream(on)>>>(ragged, index.queries, e, q, k, fold);
  check_launch("sum_over_queries");
}

template <class T, class K>
void additive_scores(Cuda on, const RaggedIndex& ragged, Matrix<const T> q, Matrix<const K> k,
                     const T* v, Matrix<T> e) {
  score<Score::additive>(on, ragged, q, k, v, e, OutputMode::set);
  check_launch("additive_scores");
}

template <class T, class K>
void additive_scores_grad(Cuda on, const RaggedIndex& ragged, Matrix<const T> q, Matrix<const K> k,
                          const T* v, Matrix<const T> de, const AdditiveGrad<T>& out) {
  const int64_t A = q.cols;
  if (A == 0) return;
  if (!out.dk.data && !out.dv) {
    if (ragged.queries == 0 || !out.dq.data) return;
    const bool wide = A % 2 == 0 && at_packs<2>(q.data, v, out.dq.data) && at_packs<2>(k.data);
    const dim3 blocks(static_cast<unsigned>(ragged.queries),
                      blocks_for(A, kThreads * (wide ? 2 : 1)));
    auto* kernel = wide ? additive_queries_backward<2, K> : additive_queries_backward<1, K>;
    kernel<<<blocks, kThreads, 0, stream(on)>>>(ragged, q, k, v, de, out.dq, out.fold_q);
    return check_launch("additive_scores_grad");
  }
  const Buffer buffer =
      out.dv ? allocate(static_cast<std::size_t>(ragged.sentences * A) * sizeof(T), on) : nullptr;
  float* parts = reinterpret_cast<float*>(buffer.get());
  if (ragged.sentences > 0) {
    const QueryIndex index(on, ragged);
    const dim3 blocks(static_cast<unsigned>(ragged.sentences), blocks_for(A, kThreads));
    additive_backward<<<blocks, kThreads, 0, stream(on)>>>(ragged, index.queries, q, k, v, de, out,
                                                           parts);
    check_launch("additive_scores_grad");
  }
  if (!out.dv) return;
  sum_rows<<<blocks_for(A, kWarp), dim3(kWarp, 16), 0, stream(on)>>>(parts, ragged.sentences, A,
                                                                     out.dv, out.fold_v);
  check_launch("additive_scores_grad");
}

template <class T>
void softmax_within(Cuda on, Matrix<const T> e, const int32_t* low, const int32_t* high,
                    Matrix<T> y) {
  if (e.size() == 0) return;
  softmax_ranges<<<blocks_for(e.rows, kWarps), dim3(kWarp, kWarps), 0, stream(on)>>>(e, low, high,
                                                                                     y);
  check_launch("softmax_within");
}

template void lengths_as(Cuda, const RaggedIndex&, int64_t, float*);
template void sum_over_queries(Cuda, const RaggedIndex&, Matrix<const float>, Matrix<const float>,
                               Matrix<float>, OutputMode);
#define FOVEA_INSTANTIATE(K)                                                                    \
  template void ragged_dot(Cuda, const RaggedIndex&, Matrix<const float>, Matrix<const K>,      \
                           Matrix<float>, OutputMode);                                          \
  template void sum_over_words(Cuda, const RaggedIndex&, Matrix<const float>, Matrix<const K>,  \
                               Matrix<float>, OutputMode, Matrix<bf16>);                        \
  template void additive_scores(Cuda, const RaggedIndex&, Matrix<const float>, Matrix<const K>, \
                                const float*, Matrix<float>);                                   \
  template void additive_scores_grad(Cuda, const RaggedIndex&, Matrix<const float>,             \
                                     Matrix<const K>, const float*, Matrix<const float>,        \
                                     const AdditiveGrad<float>&);
FOVEA_INSTANTIATE(float)
FOVEA_INSTANTIATE(bf16)
#undef FOVEA_INSTANTIATE
template void softmax_within(Cuda, Matrix<const float>, const int32_t*, const int32_t*,
                             Matrix<float>);

}  // namespace fovea::kernel
