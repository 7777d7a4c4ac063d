#include <cmath>

#include "cache/kv_cache_kernel.h"
#include "ops/quad.cuh"
#include "tensor/cuda.h"
#include "tensor/warp.cuh"

namespace fovea::kernel {
namespace {

constexpr int kWarps = 4;

__device__ inline uint32_t bits(float x) { return __float_as_uint(x); }
__device__ inline uint32_t bits(bf16 x) { return x.bits; }
__device__ inline void set(float& to, float value) { to = value; }
__device__ inline void set(bf16& to, float value) { to = to_bf16(value); }

// 16 bytes of a row, that is, 8 bf16 or 4 float numbers in adjacent columns.
template <class T>
struct Chunk {
  static constexpr int kCount = 16 / sizeof(T), kOfWord = 4 / sizeof(T);
  uint32_t words[4];

  __device__ float at(int k) const {
    const uint32_t word = words[k / kOfWord];
    if constexpr (kOfWord == 1) return __uint_as_float(word);
    return __uint_as_float(k % 2 ? word & 0xFFFF0000u : word << 16);
  }
  // Loads the columns col … col + kCount − 1 of a row of `cols` columns, with 0 for columns past
  // its end. If kAligned, REQUIRES: cols % kCount == 0, and the row begins at a multiple of 16
  // bytes.
  template <bool kAligned>
  __device__ static Chunk load(const T* row, int col, int cols) {
    Chunk chunk{};
    if constexpr (kAligned) {
      if (col < cols) {
        const uint4 all = __ldg(reinterpret_cast<const uint4*>(row + col));
        chunk = {{all.x, all.y, all.z, all.w}};
      }
    } else {
#pragma unroll
      for (int k = 0; k < kCount; ++k)
        if (col + k < cols) chunk.words[k / kOfWord] |= bits(row[col + k]) << 16 * (k % kOfWord);
    }
    return chunk;
  }
  template <bool kAligned>
  __device__ void store(T* row, int col, int cols) const {
    if constexpr (kAligned) {
      if (col < cols)
        *reinterpret_cast<uint4*>(row + col) = {words[0], words[1], words[2], words[3]};
    } else {
#pragma unroll
      for (int k = 0; k < kCount; ++k)
        if (col + k < cols) set(row[col + k], at(k));
    }
  }
};

// Note [Groups and segments]
// A group of lanes reads one head of one word at a time: d_k columns of k and of v. It has one lane
// per chunk (16 bytes) of these columns, but at most 32 lanes. The words that a row of q attends to
// are divided into segments of kSegment words. Four segments (w = 0 … 3) form a run. In a segment,
// group g of a warp reads the words g, g + kStep, … . All segments with the same w have one partial
// sum. A warp computes one or all of the four partial sums, but they are always merged in the same
// order. So results do not depend on the number of rows.
constexpr int kSegments = 4;
constexpr int kAtOnce = 4;  // words per group whose loads are in flight together

// The sizes in Note [Groups and segments], for heads of at most kCols columns.
template <class T, int kCols>
struct Groups {
  static constexpr int kCount = Chunk<T>::kCount;
  static constexpr int kLanes = kCols / kCount < kWarp ? kCols / kCount : kWarp;
  static constexpr int kChunks = kCols / (kCount * kLanes);  // chunks of a head per lane
  static constexpr int kEach = kChunks * kCount;
  static constexpr int kStep = kWarp / kLanes;  // number of groups per warp
  static constexpr int kSegment = kAtOnce * kStep, kRun = kSegments * kSegment;

  __device__ static int lane() { return static_cast<int>(threadIdx.x) % kLanes; }
  __device__ static int group() { return static_cast<int>(threadIdx.x) % kWarp / kLanes; }
  __device__ static int column(int chunk) { return kCount * (lane() + chunk * kLanes); }
};

// The running softmax over the words u that a group of lanes reads: max_u s_u, Σ_u exp(s_u − max)
// and Σ_u exp(s_u − max) v_u.
template <int kEach>
struct OnlineSoftmax {
  float max = -INFINITY, sum = 0;
  float y[kEach] = {};

  // Replaces max by new_max and scales the sums accordingly.
  __device__ void raise_max(float new_max) {
    const float by = max > -INFINITY ? expf(max - new_max) : 0;
    max = new_max;
    sum *= by;
#pragma unroll
    for (int c = 0; c < kEach; ++c) y[c] *= by;
  }
  // Merges the softmax of this lane with that of the lane with number (this lane ^ step). Both
  // lanes get the result.
  __device__ void merge_lane(int step) {
    raise_max(fmaxf(max, __shfl_xor_sync(~0u, max, step)));
    sum += __shfl_xor_sync(~0u, sum, step);
#pragma unroll
    for (int c = 0; c < kEach; ++c) y[c] += __shfl_xor_sync(~0u, y[c], step);
  }
};

// Returns the address of the key of word u of a hypothesis, at the first column of the head. The
// value of the word is D numbers after its key.
template <class T>
struct OwnWords {
  const T* new_key;          // key of the new word
  const void* const* pages;  // pages[u · layers]: page of word u for this layer
  const int32_t* slots;
  int layers, step, column;
  int64_t stride;

  __device__ const T* operator()(int u) const {
    if (u == step) return new_key;
    const T* page = static_cast<const T*>(pages[int64_t{u} * layers]);
    return page + __ldg(slots + u) * stride + column;
  }
};
// Like OwnWords, but for the words of the source sentence.
template <class T>
struct SourceWords {
  const T* first;
  int64_t stride;

  __device__ const T* operator()(int u) const { return first + u * stride; }
};

struct HeadLayout {                  // the layout of q, k and v for one head of a row
  int size, values;                  // d_k, and the distance from k to v
  float scale;                       // 1 / √d_k
  const float* distances = nullptr;  // the distance score of word 0, or absent
  int heads = 1;                     // from one distance to the next
};

// Adds the words first + t · kStep, t < kAtOnce, to the softmax, except words from n on.
template <class T, int kCols, bool kAligned, class Words>
__device__ void read_words(OnlineSoftmax<Groups<T, kCols>::kEach>& softmax, const HeadLayout& head,
                           const float* q, const Words& word, int first, int n) {
  using G = Groups<T, kCols>;
  Chunk<T> k[kAtOnce][G::kChunks] = {}, v[kAtOnce][G::kChunks] = {};
#pragma unroll
  for (int t = 0; t < kAtOnce; ++t) {
    const int u = first + t * G::kStep;
    if (u >= n) continue;
    const T* row = word(u);
#pragma unroll
    for (int c = 0; c < G::kChunks; ++c) {
      k[t][c] = Chunk<T>::template load<kAligned>(row, G::column(c), head.size);
      v[t][c] = Chunk<T>::template load<kAligned>(row + head.values, G::column(c), head.size);
    }
  }
  float s[kAtOnce], new_max = softmax.max;
#pragma unroll
  for (int t = 0; t < kAtOnce; ++t) {
    float part = 0;
#pragma unroll
    for (int c = 0; c < G::kEach; ++c) part += q[c] * k[t][c / G::kCount].at(c % G::kCount);
    s[t] = across_lanes(part, G::kLanes, WarpSum{}) * head.scale;
    const int u = first + t * G::kStep;
    if (head.distances && u < n) s[t] += __ldg(head.distances + int64_t{u} * head.heads);
    if (u < n) new_max = fmaxf(new_max, s[t]);
  }
  if (new_max == -INFINITY) return;  // the group has no words in this segment
  softmax.raise_max(new_max);
#pragma unroll
  for (int t = 0; t < kAtOnce; ++t) {
    const float a = first + t * G::kStep < n ? expf(s[t] - new_max) : 0;
    softmax.sum += a;
#pragma unroll
    for (int c = 0; c < G::kEach; ++c) softmax.y[c] += a * v[t][c / G::kCount].at(c % G::kCount);
  }
}

// The four partial sums (w = 0 … 3) of Note [Groups and segments]. result() merges them and divides
// by the sum of all exponentials.
template <int kCols>
struct PartialSums {
  float sums[kSegments][kCols];
  float maxima[kSegments], totals[kSegments];

  __device__ float result(int column) const {
    OnlineSoftmax<1> whole;
    for (int w = 0; w < kSegments; ++w) {
      if (totals[w] == 0) continue;  // the segments with this w had no words
      whole.raise_max(fmaxf(whole.max, maxima[w]));
      const float by = expf(maxima[w] - whole.max);
      whole.sum += totals[w] * by;
      whole.y[0] += by * sums[w][column];
    }
    return whole.sum > 0 ? whole.y[0] / whole.sum : 0;
  }
};

// The work of a thread: its row, its head, and w of its first segment. Neighbouring warps have
// neighbouring rows and the same head, because rows of one sentence read the same words.
struct WarpRole {
  int row, head, in_block, segment, thread, threads;

  __device__ WarpRole(int warps, int heads) {  // `warps`: warps per row and head
    const int warp = static_cast<int>(threadIdx.x) / kWarp;
    const int pair = (static_cast<int>(blockIdx.x) * kWarps + warp) / warps;
    row = pair / (kWarps * heads) * kWarps + pair % kWarps;
    head = pair / kWarps % heads;
    in_block = warp / warps;
    segment = warp % warps;
    thread = static_cast<int>(threadIdx.x) % (kWarp * warps);
    threads = kWarp * warps;
  }
};

template <class T, int kCols, bool kAligned, class Words>
__device__ void attend(const HeadLayout& head, const WarpRole& role, const T* q_row,
                       const Words& word, int n, T* y) {
  using G = Groups<T, kCols>;
  __shared__ PartialSums<kCols> all_partial_sums[kWarps];
  PartialSums<kCols>& partial_sums = all_partial_sums[role.in_block];
  float q[G::kEach];
#pragma unroll
  for (int c = 0; c < G::kChunks; ++c) {
    const Chunk<T> chunk =
        n > 0 ? Chunk<T>::template load<kAligned>(q_row, G::column(c), head.size) : Chunk<T>{};
#pragma unroll
    for (int k = 0; k < G::kCount; ++k) q[c * G::kCount + k] = chunk.at(k);
  }
  for (int w = role.segment; w < kSegments; w += role.threads / kWarp) {
    OnlineSoftmax<G::kEach> softmax;
    for (int first = w * G::kSegment; first < n; first += G::kRun)
      read_words<T, kCols, kAligned>(softmax, head, q, word, first + G::group(), n);
    if (w * G::kSegment < n) {
#pragma unroll
      for (int step = G::kLanes; step < kWarp; step *= 2) softmax.merge_lane(step);
    }
    if (G::group() > 0) continue;
#pragma unroll
    for (int c = 0; c < G::kEach; ++c)
      partial_sums.sums[w][G::column(c / G::kCount) + c % G::kCount] = softmax.y[c];
    partial_sums.maxima[w] = softmax.max;
    partial_sums.totals[w] = softmax.sum;
  }
  __syncthreads();
  if (n == 0) return;
  for (int column = role.thread; column < head.size; column += role.threads)
    set(y[column], partial_sums.result(column));
}

template <class T>
__device__ HeadLayout head_of(const StepAttention<T>& in, float scale) {
  return {static_cast<int>(in.y.cols / in.heads), static_cast<int>(in.y.cols), scale};
}

// Attention to the own words of each hypothesis. `warps` warps (1 or kWarps) compute one head of
// one row together.
template <class T, int kCols, bool kAligned>
__global__ void __launch_bounds__(kWarps* kWarp)
    attend_own(const __grid_constant__ StepAttention<T> in, float scale, int warps) {
  using G = Groups<T, kCols>;
  const StepHeader& at = *in.control.header;
  const WarpRole role(warps, static_cast<int>(in.heads));
  HeadLayout head = head_of(in, scale);
  if (in.distances.data)
    head.distances = in.distances.data + (in.distances.reach - at.step) * in.heads + role.head,
    head.heads = static_cast<int>(in.heads);
  const int layers = static_cast<int>(in.layers), D = static_cast<int>(in.y.cols);
  const bool alive = role.row < at.rows;
  const int row = alive ? role.row : 0, column = role.head * head.size;
  const T* q = in.q.row(row) + column;
  const void* const* pages = at.pages + layers + in.layer;  // skips the entries of the source
  if (alive && role.segment == 0 && G::group() == 0) {
    T* page = static_cast<T*>(const_cast<void*>(pages[int64_t{at.step} * layers]));
    T* to = page + int64_t{row} * 2 * D + column;
#pragma unroll
    for (int c = 0; c < G::kChunks; ++c)
#pragma unroll
      for (int part = 0; part < 2; ++part)  // k, then v
        Chunk<T>::template load<kAligned>(q + (1 + part) * D, G::column(c), head.size)
            .template store<kAligned>(to + part * D, G::column(c), head.size);
  }
  const OwnWords<T> word{
      q + D, pages, at.table + int64_t{row} * at.stride, layers, at.step, column, int64_t{2} * D};
  attend<T, kCols, kAligned>(head, role, q, word, alive ? at.step + 1 : 0, in.y.row(row) + column);
}

template <class T, int kCols, bool kAligned>
__global__ void __launch_bounds__(kWarps* kWarp)
    attend_to_source(const __grid_constant__ StepAttention<T> in, float scale, int warps) {
  const StepHeader& at = *in.control.header;
  const WarpRole role(warps, static_cast<int>(in.heads));
  const HeadLayout head = head_of(in, scale);
  const bool alive = role.row < at.rows;
  const int row = alive ? role.row : 0, column = role.head * head.size;
  const int64_t stride = 2 * in.y.cols;
  const T* kv = static_cast<const T*>(at.pages[in.layer]) + column;
  const SourceWords<T> word{kv + in.control.source_first[row] * stride, stride};
  attend<T, kCols, kAligned>(head, role, in.q.row(row) + column, word,
                             alive ? in.control.source_words[row] : 0, in.y.row(row) + column);
}

template <class T>
bool aligned_in_chunks(const T* data, int64_t step) {
  return reinterpret_cast<uintptr_t>(data) % 16 == 0 && step % Chunk<T>::kCount == 0;
}

// Calls launch(width, whether rows are aligned in chunks, 1 / √d_k, warps, blocks). `warps` is the
// number of warps per head and row: usually 1, but four if rows · heads is small, to reduce the
// latency.
template <class T, class Launch>
void with_plan(const StepAttention<T>& in, Launch launch) {
  const int64_t size = in.y.cols / in.heads, rows = (in.y.rows + kWarps - 1) / kWarps * kWarps;
  const int warps = rows * in.heads <= 2048 ? kWarps : 1;
  const unsigned blocks = blocks_for(rows * in.heads, kWarps / warps);
  const auto scale = static_cast<float>(1 / std::sqrt(static_cast<double>(size)));
  with_width(size, [&](auto width) {
    if (aligned_in_chunks(in.q.data, size) && aligned_in_chunks(in.y.data, size))
      launch(width, std::true_type{}, scale, warps, blocks);
    else
      launch(std::integral_constant<int, 256>{}, std::false_type{}, scale, warps, blocks);
  });
}

__global__ void copy_slots(const __grid_constant__ StepControl control) {
  const StepHeader& at = *control.header;
  const int row = static_cast<int>(blockIdx.x);
  if (row >= at.rows) return;
  const int32_t* from = at.before + int64_t{control.parents[row]} * at.before_stride;
  int32_t* to = at.table + int64_t{row} * at.stride;
  for (int u = static_cast<int>(threadIdx.x); u <= at.step; u += static_cast<int>(blockDim.x))
    to[u] = u < at.step ? from[u] : row;
}

}  // namespace

void extend_table(Cuda on, const StepControl& control) {
  copy_slots<<<static_cast<unsigned>(control.rows), kWarp, 0, stream(on)>>>(control);
  check_launch("extend_table");
}

template <class T>
void attend_words(Cuda on, const StepAttention<T>& in) {
  if constexpr (std::is_same_v<T, bf16>)
    if (!in.distances.data && attend_words_whole(on, in)) return;
  with_plan(in, [&](auto width, auto aligned, float scale, int warps, unsigned blocks) {
    attend_own<T, width, aligned><<<blocks, kWarps * kWarp, 0, stream(on)>>>(in, scale, warps);
  });
  check_launch("attend_words");
}

template <class T>
void attend_source(Cuda on, const StepAttention<T>& in) {
  if constexpr (std::is_same_v<T, bf16>)
    if (attend_source_whole(on, in)) return;
  with_plan(in, [&](auto width, auto aligned, float scale, int warps, unsigned blocks) {
    attend_to_source<T, width, aligned>
        <<<blocks, kWarps * kWarp, 0, stream(on)>>>(in, scale, warps);
  });
  check_launch("attend_source");
}

template void attend_words(Cuda, const StepAttention<float>&);
template void attend_words(Cuda, const StepAttention<bf16>&);
template void attend_source(Cuda, const StepAttention<float>&);
template void attend_source(Cuda, const StepAttention<bf16>&);

}  // namespace fovea::kernel
