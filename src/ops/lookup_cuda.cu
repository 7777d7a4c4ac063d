#include <climits>

#include "ops/lookup_kernel.h"
#include "ops/pack.cuh"
#include "ops/warp.cuh"
#include "tensor/cuda.h"
#include "tensor/memory.h"

namespace fovea::kernel {
namespace {

constexpr int kThreads = 128;
constexpr int kWarps = kThreads / kWarp;
constexpr int kIndexWarps = 8;
constexpr int kWords = 16;             // whose sums a thread holds
constexpr int64_t kFewQueries = 1024;  // each sentence looks through all to find its own

// Relative error below 5e-7, without branches: near 0 an odd polynomial, fitted for the smallest
// relative error, and beyond it 1 − 2 / (e²ˣ + 1).
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

// Absolute error below 1e-6: enough beside what was rounded to bf16, and 1 − t² is as exact where t
// is near 1.
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

__global__ void count_words(Looking look, int32_t* n) {
  const int64_t i = int64_t{blockIdx.x} * kThreads + threadIdx.x;
  if (i < look.queries) n[i] = static_cast<int32_t>(look.words(i));
}

__global__ void number_of_words(Looking look, int64_t most, float* n) {
  const int64_t i = int64_t{blockIdx.x} * kThreads + threadIdx.x;
  if (i < look.queries) n[i] = static_cast<float>(min(look.words(i), most));
}

enum class Score { dot, additive };

// One warp for each query and kTogether words, for which it reads the query once.
constexpr int kTogether = 4;
template <Score kScore, int kWide, class K>
__global__ void __launch_bounds__(kThreads)
    score_words(Looking look, Matrix<const float> q, Matrix<const K> k, const float* v,
                Matrix<float> e, Fold fold) {
  const int64_t i = blockIdx.x;
  const int first =
      (static_cast<int>(blockIdx.y) * kWarps + static_cast<int>(threadIdx.y)) * kTogether;
  const int lane = static_cast<int>(threadIdx.x), cols = static_cast<int>(q.cols);
  if (first >= e.cols) return;
  const int words = static_cast<int>(look.words(i)) - first;  // from the first on
  const float* ask = q.row(i);
  const K* key = k.row(look.first(i) + first);
  float sum[kTogether] = {};
  for (int a = lane * kWide; words > 0 && a < cols; a += kWarp * kWide) {
    Pack<kWide> y[kTogether];
#pragma unroll
    for (int m = 0; m < kTogether; ++m)
      y[m] = m < words ? load<kWide>(key + m * k.cols + a) : Pack<kWide>{};
    const Pack<kWide> x = load<kWide>(ask + a);
    const Pack<kWide> by = kScore == Score::dot ? Pack<kWide>{} : load<kWide>(v + a);
#pragma unroll
    for (int m = 0; m < kTogether; ++m)
#pragma unroll
      for (int w = 0; w < kWide; ++w)
        sum[m] += kScore == Score::dot ? x.at[w] * y[m].at[w]
                                       : by.at[w] * tanh_with<K>(x.at[w] + y[m].at[w]);
  }
#pragma unroll
  for (int m = 0; m < kTogether; ++m) {
    const float total = across_warp(sum[m], Sum{});
    if (lane != m || first + m >= e.cols) continue;
    float& to = e.row(i)[first + m];
    if (m < words)
      fold_into(to, fold, total);
    else if (fold == Fold::set)
      to = 0;
  }
}

template <Score kScore, class K>
void score(Cuda on, const Looking& look, Matrix<const float> q, Matrix<const K> k, const float* v,
           Matrix<float> e, Fold fold) {
  constexpr int kWide = 16 / sizeof(K);
  if (e.size() == 0) return;
  const dim3 blocks(static_cast<unsigned>(look.queries), blocks_for(e.cols, kWarps * kTogether));
  auto* kernel = q.cols % kWide == 0 && at_packs<kWide>(q.data, k.data, v)
                     ? score_words<kScore, kWide, K>
                     : score_words<kScore, 1, K>;
  kernel<<<blocks, dim3(kWarp, kWarps), 0, stream(on)>>>(look, q, k, v, e, fold);
}

// One thread for each query and kWide columns. Words of weight 0 are not read: most of them, where
// attention is hard or local.
template <int kWide, class K>
__global__ void __launch_bounds__(kThreads)
    blend_words(Looking look, Matrix<const float> e, Matrix<const K> k, Matrix<float> q, Fold fold,
                Matrix<bf16> rounded) {
  constexpr int kAhead = 8;
  const int64_t i = blockIdx.x, a = (int64_t{blockIdx.y} * kThreads + threadIdx.x) * kWide;
  const int words = static_cast<int>(look.words(i)), lane = static_cast<int>(threadIdx.x) % kWarp;
  const bool here = a < q.cols;
  const K* from = k.row(look.first(i)) + a;
  Pack<kWide> sum{};
  for (int run = 0; run < words; run += kWarp) {  // whose weights the lanes know
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

// The queries of each sentence in their order: those of b are at[first[b]] … at[first[b + 1]].
// Without an index all queries are looked through.
struct BySentence {
  const int32_t* sentence;
  int count;
  const int32_t *first, *at;

  // body(i) for those of b; returns whether there were any. REQUIRES: whole warps call it.
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

// One block for each sentence, whose warps take equal shares of all queries: first they count, then
// they know where to write.
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
  if (lane == 0) {
    own[warp] = mine;
    smaller[warp] = before;
  }
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

// An index that lives as long as this.
struct Index {
  Buffer room;
  BySentence queries;

  Index(Cuda on, const Looking& look)
      : queries{look.sentence, static_cast<int>(look.queries), nullptr, nullptr} {
    if (look.queries <= kFewQueries) return;
    room =
        allocate(static_cast<std::size_t>(look.sentences + 1 + look.queries) * sizeof(int32_t), on);
    int32_t* first = reinterpret_cast<int32_t*>(room.get());
    int32_t* at = first + look.sentences + 1;
    index_queries<<<static_cast<unsigned>(look.sentences), kIndexWarps * kWarp, 0, stream(on)>>>(
        look.sentence, queries.count, first, at);
    check_launch("index of queries");
    queries.first = first;
    queries.at = at;
  }
};

// One thread for kWide columns of some words of a sentence, which takes its queries in order.
template <int kWide>
__global__ void __launch_bounds__(kThreads)
    spread_queries(Looking look, BySentence queries, Matrix<const float> e, Matrix<const float> q,
                   Matrix<float> k, Fold fold) {
  const int b = static_cast<int>(blockIdx.x), begin = static_cast<int>(blockIdx.z) * kWords;
  const int words = look.offsets[b + 1] - look.offsets[b] - begin;  // from `begin` on
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
  if (!here || (!any && fold == Fold::add)) return;
  float* to = k.row(look.offsets[b] + begin) + a;
#pragma unroll
  for (int m = 0; m < kWords; ++m)
    if (m < words) fold_pack(to + m * k.cols, fold, sum[m]);
}

// The words of a sentence, kWords at a time, as one thread sees them: one column of each.
struct Stretch {
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
  // What a query with these de gives: returns its dq / v, and adds to dv.
  template <class K>
  __device__ float flow(float ask, const float* de, float& dv) {
    float dq = 0;
#pragma unroll
    for (int m = 0; m < kWords; ++m) {
      if (m >= words) break;
      const float t = tanh_with<K>(ask + key[m]), g = de[m] * (1 - t * t);
      dq += g;
      dk[m] += g;
      dv += de[m] * t;
    }
    return dq;
  }
  __device__ void write(float* to, int64_t stride, Fold fold, float v) const {
#pragma unroll
    for (int m = 0; m < kWords; ++m)
      if (m < words) fold_into(to[m * stride], fold, v * dk[m]);
  }
};

// One thread for each sentence and column: it takes the words in stretches, and for each of these
// the queries in order. `parts` gets what it has of dv.
template <class K>
__global__ void __launch_bounds__(kThreads)
    additive_back(Looking look, BySentence queries, Matrix<const float> q, Matrix<const K> k,
                  const float* v, Matrix<const float> de, AdditiveGrad<float> out, float* parts) {
  const int b = static_cast<int>(blockIdx.x);
  const int64_t A = q.cols, a = int64_t{blockIdx.y} * kThreads + threadIdx.x;
  const int64_t first = look.offsets[b];
  const int words = look.offsets[b + 1] - look.offsets[b];
  const bool here = a < A;
  const float by = here ? v[a] : 0.0f;
  float dv = 0;
  Stretch stretch;
  for (int begin = 0; begin == 0 || begin < words; begin += kWords) {  // none: dq is 0
    const int64_t place = (first + begin) * A + a;
    stretch.read(k.data + place, A, here ? min(words - begin, kWords) : 0);
    const Fold fold_q = begin == 0 ? out.fold_q : Fold::add;
    const bool any = queries.each(b, [&](int64_t i) {
      const float dq = stretch.flow<K>(here ? q.row(i)[a] : 0.0f, de.row(i) + begin, dv);
      if (here && out.dq.data) fold_into(out.dq.row(i)[a], fold_q, by * dq);
    });
    if (out.dk.data && (any || out.fold_k == Fold::set))
      stretch.write(out.dk.data + place, A, out.fold_k, by);
  }
  if (parts && here) parts[b * A + a] = dv;
}

// What is left of that where only dq is wanted: one thread for each query and kWide columns.
template <int kWide, class K>
__global__ void __launch_bounds__(kThreads)
    additive_queries_back(Looking look, Matrix<const float> q, Matrix<const K> k, const float* v,
                          Matrix<const float> de, Matrix<float> dq, Fold fold) {
  constexpr int kAhead = 8;
  const int64_t i = blockIdx.x, a = (int64_t{blockIdx.y} * kThreads + threadIdx.x) * kWide;
  const int words = static_cast<int>(look.words(i)), lane = static_cast<int>(threadIdx.x) % kWarp;
  const bool here = a < q.cols;
  const K* key = k.row(look.first(i)) + a;
  const Pack<kWide> ask = here ? load<kWide>(q.row(i) + a) : Pack<kWide>{};
  const Pack<kWide> by = here ? load<kWide>(v + a) : Pack<kWide>{};
  Pack<kWide> sum{};
  for (int run = 0; run < words; run += kWarp) {  // whose de the lanes know
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
        const float d = __shfl_sync(~0u, own, first + m);  // 0 behind the last word
#pragma unroll
        for (int w = 0; w < kWide; ++w) {
          const float t = tanh_with<K>(ask.at[w] + x[m].at[w]);
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

// y = Σ of the rows, in an order that depends on their number alone.
__global__ void sum_rows(const float* rows, int64_t count, int64_t cols, float* y, Fold fold) {
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

// One warp for each row.
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
  top = across_warp(top, Larger{});
  double sum = 0;
  for (int j = begin + lane; j < end; j += kWarp) sum += static_cast<double>(expf(in[j] - top));
  const float scale = static_cast<float>(1 / across_warp(sum, Sum{}));
  for (int j = lane; j < cols; j += kWarp)
    out[j] = j >= begin && j < end ? expf(in[j] - top) * scale : 0.0f;
}

}  // namespace

void lengths(Cuda on, const Looking& look, int32_t* n) {
  if (look.queries == 0) return;
  count_words<<<blocks_for(look.queries, kThreads), kThreads, 0, stream(on)>>>(look, n);
  check_launch("lengths");
}
template <class T>
void lengths_as(Cuda on, const Looking& look, int64_t most, T* n) {
  if (look.queries == 0) return;
  number_of_words<<<blocks_for(look.queries, kThreads), kThreads, 0, stream(on)>>>(look, most, n);
  check_launch("lengths");
}

template <class T, class K>
void look_dot(Cuda on, const Looking& look, Matrix<const T> q, Matrix<const K> k, Matrix<T> e,
              Fold fold) {
  score<Score::dot>(on, look, q, k, nullptr, e, fold);
  check_launch("look_dot");
}

template <class T, class K>
void look_blend(Cuda on, const Looking& look, Matrix<const T> e, Matrix<const K> k, Matrix<T> q,
                Fold fold, Matrix<bf16> rounded) {
  if (q.size() == 0) return;
  const bool wide = q.cols % 4 == 0 && at_fours(q.data) && at_fours(k.data, rounded.data);
  const dim3 blocks(static_cast<unsigned>(look.queries),
                    blocks_for(q.cols, kThreads * (wide ? 4 : 1)));
  auto* kernel = wide ? blend_words<4, K> : blend_words<1, K>;
  kernel<<<blocks, kThreads, 0, stream(on)>>>(look, e, k, q, fold, rounded);
  check_launch("look_blend");
}

template <class T>
void look_spread(Cuda on, const Looking& look, Matrix<const T> e, Matrix<const T> q, Matrix<T> k,
                 Fold fold) {
  if (k.size() == 0) return;
  const Index index(on, look);
  const bool wide = k.cols % 4 == 0 && at_fours(q.data, k.data);
  const dim3 blocks(static_cast<unsigned>(look.sentences),
                    blocks_for(k.cols, kThreads * (wide ? 4 : 1)), blocks_for(e.cols, kWords));
  auto* kernel = wide ? spread_queries<4> : spread_queries<1>;
  kernel<<<blocks, kThreads, 0, stream(on)>>>(look, index.queries, e, q, k, fold);
  check_launch("look_spread");
}

template <class T, class K>
void additive_scores(Cuda on, const Looking& look, Matrix<const T> q, Matrix<const K> k, const T* v,
                     Matrix<T> e) {
  score<Score::additive>(on, look, q, k, v, e, Fold::set);
  check_launch("additive_scores");
}

template <class T, class K>
void additive_scores_grad(Cuda on, const Looking& look, Matrix<const T> q, Matrix<const K> k,
                          const T* v, Matrix<const T> de, const AdditiveGrad<T>& out) {
  const int64_t A = q.cols;
  if (A == 0) return;
  if (!out.dk.data && !out.dv) {
    if (look.queries == 0 || !out.dq.data) return;
    const bool wide = A % 2 == 0 && at_packs<2>(q.data, v, out.dq.data) && at_packs<2>(k.data);
    const dim3 blocks(static_cast<unsigned>(look.queries),
                      blocks_for(A, kThreads * (wide ? 2 : 1)));
    auto* kernel = wide ? additive_queries_back<2, K> : additive_queries_back<1, K>;
    kernel<<<blocks, kThreads, 0, stream(on)>>>(look, q, k, v, de, out.dq, out.fold_q);
    return check_launch("additive_scores_grad");
  }
  const Buffer room =
      out.dv ? allocate(static_cast<std::size_t>(look.sentences * A) * sizeof(T), on) : nullptr;
  float* parts = reinterpret_cast<float*>(room.get());
  if (look.sentences > 0) {
    const Index index(on, look);
    const dim3 blocks(static_cast<unsigned>(look.sentences), blocks_for(A, kThreads));
    additive_back<<<blocks, kThreads, 0, stream(on)>>>(look, index.queries, q, k, v, de, out,
                                                       parts);
    check_launch("additive_scores_grad");
  }
  if (!out.dv) return;
  sum_rows<<<blocks_for(A, kWarp), dim3(kWarp, 16), 0, stream(on)>>>(parts, look.sentences, A,
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

template void lengths_as(Cuda, const Looking&, int64_t, float*);
template void look_spread(Cuda, const Looking&, Matrix<const float>, Matrix<const float>,
                          Matrix<float>, Fold);
#define FOVEA_INSTANTIATE(K)                                                                     \
  template void look_dot(Cuda, const Looking&, Matrix<const float>, Matrix<const K>,             \
                         Matrix<float>, Fold);                                                   \
  template void look_blend(Cuda, const Looking&, Matrix<const float>, Matrix<const K>,           \
                           Matrix<float>, Fold, Matrix<bf16>);                                   \
  template void additive_scores(Cuda, const Looking&, Matrix<const float>, Matrix<const K>,      \
                                const float*, Matrix<float>);                                    \
  template void additive_scores_grad(Cuda, const Looking&, Matrix<const float>, Matrix<const K>, \
                                     const float*, Matrix<const float>,                          \
                                     const AdditiveGrad<float>&);
FOVEA_INSTANTIATE(float)
FOVEA_INSTANTIATE(bf16)
#undef FOVEA_INSTANTIATE
template void softmax_within(Cuda, Matrix<const float>, const int32_t*, const int32_t*,
                             Matrix<float>);

}  // namespace fovea::kernel
