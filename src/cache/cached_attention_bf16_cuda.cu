#include <cuda_bf16.h>

#include <cmath>
#include <type_traits>

#include "cache/kv_cache_kernel.h"
#include "ops/quad.cuh"
#include "tensor/cuda.h"
#include "tensor/warp.cuh"

// The attention of cached_attention_cuda.cu, for the common shapes in bf16. A warp processes whole
// rows, that is, all heads of a word at once.
namespace fovea::kernel {
namespace {

constexpr int kWarps = 4;
constexpr int kNumbers = 8;  // number of bf16 values in 16 bytes
constexpr float kLog2e = 1.44269504f;

struct Chunk {
  uint4 bits;

  __device__ static Chunk load(const bf16* from) {
    return {__ldg(reinterpret_cast<const uint4*>(from))};
  }
  __device__ void store(bf16* to) const { *reinterpret_cast<uint4*>(to) = bits; }
  __device__ float at(int k) const {
    const uint32_t word = k < 2 ? bits.x : k < 4 ? bits.y : k < 6 ? bits.z : bits.w;
    return __uint_as_float(k % 2 ? word & 0xFFFF0000u : word << 16);
  }
  __device__ static uint32_t pair(float low, float new_max) {
    const __nv_bfloat162 both = __floats2bfloat162_rn(low, new_max);
    return *reinterpret_cast<const uint32_t*>(&both);
  }
  __device__ static Chunk of(const float (&x)[kNumbers]) {
    return {{pair(x[0], x[1]), pair(x[2], x[3]), pair(x[4], x[5]), pair(x[6], x[7])}};
  }
};

__device__ inline float power_of_two(float x) {
  float y;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}

// The running softmax over the words u, for one head and the columns of one chunk: max_u s_u, Σ_u
// 2^(s_u − max) and Σ_u 2^(s_u − max) v_u.
struct OnlineSoftmax {
  float max = -INFINITY, sum = 0;
  float y[kNumbers] = {};

  __device__ void raise_max(float new_max) {
    const float by = power_of_two(max - new_max);
    max = new_max;
    sum *= by;
#pragma unroll
    for (int k = 0; k < kNumbers; ++k) y[k] *= by;
  }
  __device__ void add(float s, const Chunk& v) {
    const float a = power_of_two(s - max);
    sum += a;
#pragma unroll
    for (int k = 0; k < kNumbers; ++k) y[k] += a * v.at(k);
  }
  __device__ void merge(const OnlineSoftmax& other) {
    raise_max(fmaxf(max, other.max));
    const float by = power_of_two(other.max - max);
    sum += by * other.sum;
#pragma unroll
    for (int k = 0; k < kNumbers; ++k) y[k] += by * other.y[k];
  }
};

// Note [Whole rows]
// A warp reads whole rows of k and v. A row has all heads of a word, and a chunk is 8 columns of a
// row. Lane l reads the chunks l, l + 32, … of each row. The kLanes neighbouring lanes that read
// one head add their sums, which gives the score of the head. Each lane computes the address of one
// word, and the other lanes get that address by a shuffle. If there are few queries, four warps
// divide the words of one query among themselves.
template <int kChunks>
struct RowReader {
  static constexpr int kAtOnce = kChunks > 2 ? 2 : 4;  // words whose loads are in flight together
  int D;
  float q[kChunks][kNumbers];
  OnlineSoftmax softmax[kChunks];

  __device__ int column(int c) const {
    return kNumbers * (static_cast<int>(threadIdx.x) % kWarp + c * kWarp);
  }
  __device__ void load_query(const bf16* row, float scale) {
#pragma unroll
    for (int c = 0; c < kChunks; ++c) {
      const Chunk chunk = Chunk::load(row + column(c));
#pragma unroll
      for (int k = 0; k < kNumbers; ++k) q[c][k] = chunk.at(k) * scale;
    }
  }
  // Adds the words first … first + kAtOnce − 1 to the softmax, except words from `count` on. Lane l
  // has the address of word l. REQUIRES: first < count.
  template <int kLanes>
  __device__ void read(const bf16* lane_address, int first, int count) {
    Chunk k[kAtOnce][kChunks] = {}, v[kAtOnce][kChunks] = {};
#pragma unroll
    for (int t = 0; t < kAtOnce; ++t) {
      const auto address =
          __shfl_sync(~0u, reinterpret_cast<unsigned long long>(lane_address), first + t);
      if (first + t >= count) continue;
      const bf16* row = reinterpret_cast<const bf16*>(address);
#pragma unroll
      for (int c = 0; c < kChunks; ++c) {
        k[t][c] = Chunk::load(row + column(c));
        v[t][c] = Chunk::load(row + D + column(c));
      }
    }
#pragma unroll
    for (int c = 0; c < kChunks; ++c) {
      float s[kAtOnce], new_max = softmax[c].max;
#pragma unroll
      for (int t = 0; t < kAtOnce; ++t) {
        float part = 0;
#pragma unroll
        for (int n = 0; n < kNumbers; ++n) part += q[c][n] * k[t][c].at(n);
        part = across_lanes(part, kLanes, WarpSum{});
        s[t] = first + t < count ? part : -INFINITY;
        new_max = fmaxf(new_max, s[t]);
      }
      softmax[c].raise_max(new_max);
#pragma unroll
      for (int t = 0; t < kAtOnce; ++t) softmax[c].add(s[t], v[t][c]);
    }
  }
  __device__ void write(bf16* row) const {
#pragma unroll
    for (int c = 0; c < kChunks; ++c) {
      const float by = 1 / softmax[c].sum;
      float y[kNumbers];
#pragma unroll
      for (int k = 0; k < kNumbers; ++k) y[k] = softmax[c].y[k] * by;
      Chunk::of(y).store(row + column(c));
    }
  }
};

enum class Words { own, source };

// Returns the address of the key of word u that query `row` attends to. The value of the word is D
// numbers after its key.
template <Words kWords>
struct WordAddress {
  const StepAttention<bf16>& in;
  const StepHeader& at;
  int row;

  __device__ int words() const {
    return kWords == Words::own ? at.step + 1 : in.control.source_words[row];
  }
  __device__ const bf16* operator()(int u) const {
    const int64_t stride = 2 * in.y.cols;
    if constexpr (kWords == Words::source) {
      const bf16* kv = static_cast<const bf16*>(at.pages[in.layer]);
      return kv + (in.control.source_first[row] + u) * stride;
    } else {
      if (u == at.step) return in.q.row(row) + in.y.cols;
      const bf16* page = static_cast<const bf16*>(at.pages[(1 + u) * in.layers + in.layer]);
      return page + at.table[int64_t{row} * at.stride + u] * stride;
    }
  }
};

// Stores the key and value of the new word of query `row`, for later steps.
template <int kChunks>
__device__ void store_new_word(const StepAttention<bf16>& in, const StepHeader& at, int row) {
  const void* const page = at.pages[(1 + at.step) * in.layers + in.layer];
  bf16* const to = static_cast<bf16*>(const_cast<void*>(page)) + int64_t{row} * 2 * in.y.cols;
  const bf16* const from = in.q.row(row) + in.y.cols;
#pragma unroll
  for (int c = 0; c < 2 * kChunks; ++c) {
    const int column = kNumbers * (static_cast<int>(threadIdx.x) % kWarp + c * kWarp);
    Chunk::load(from + column).store(to + column);
  }
}

// Reads the words of one query that warp `share` of `shares` warps processes. The words are divided
// into groups of kAtOnce words. The warp reads the groups share, share + shares, … .
template <int kLanes, int kChunks, Words kWords>
__device__ void read_words(RowReader<kChunks>& reader, const WordAddress<kWords>& address_of,
                           int share, int shares) {
  const int n = address_of.words(), lane = static_cast<int>(threadIdx.x) % kWarp;
  for (int first = 0; first < n; first += kWarp) {
    const int count = min(n - first, kWarp);
    const bf16* const address = lane < count ? address_of(first + lane) : nullptr;
    const int step = RowReader<kChunks>::kAtOnce;
    for (int u = share * step; u < count; u += shares * step)
      reader.template read<kLanes>(address, u, count);
  }
}

// Note [Rows of one sentence]
// The queries of the hypotheses of a sentence are adjacent rows, which attend to the same source.
// If all rows of a block have the same source, the block reads each source word once for all of
// them. Its warps divide the chunks of the columns and the words: for each chunk, kShares warps
// each process every kShares-th group of kAtOnce words, for all rows.
template <int kChunks>
struct SameSourceRows {
  static constexpr int kShares = kWarps / kChunks, kAtOnce = 4, kRows = kWarps;
  float4 q[kRows][kChunks][2][kWarp];  // in shared memory, because there are not enough registers
  OnlineSoftmax partial_sums[kShares > 1 ? kShares - 1 : 1][kChunks][kRows][kWarp];

  // Whether all rows of the block that begins at row `first` attend to the same source.
  __device__ static bool have_same_source(const StepAttention<bf16>& in, const StepHeader& at,
                                          int first) {
    for (int r = 1; r < kRows && first + r < at.rows; ++r)
      if (in.control.source_first[first + r] != in.control.source_first[first]) return false;
    return true;
  }

  template <int kLanes>
  __device__ void attend(const StepAttention<bf16>& in, const StepHeader& at, int first,
                         float scale) {
    const int warp = static_cast<int>(threadIdx.x) / kWarp;
    const int lane = static_cast<int>(threadIdx.x) % kWarp;
    const int chunk = warp % kChunks, share = warp / kChunks;
    const int column = kNumbers * (lane + chunk * kWarp), count = min(kRows, at.rows - first);
    for (int r = share; r < kRows; r += kShares) {
      const Chunk c = Chunk::load(in.q.row(first + min(r, count - 1)) + column);
#pragma unroll
      for (int h = 0; h < 2; ++h)
        q[r][chunk][h][lane] = {c.at(4 * h) * scale, c.at(4 * h + 1) * scale,
                                c.at(4 * h + 2) * scale, c.at(4 * h + 3) * scale};
    }
    __syncthreads();
    OnlineSoftmax softmax[kRows];
    const WordAddress<Words::source> address_of{in, at, first};
    const int n = address_of.words();
    for (int u = share * kAtOnce; u < n; u += kShares * kAtOnce) {
      Chunk k[kAtOnce] = {}, v[kAtOnce] = {};
#pragma unroll
      for (int t = 0; t < kAtOnce; ++t) {
        if (u + t >= n) continue;
        const bf16* const row = address_of(u + t) + column;
        k[t] = Chunk::load(row);
        v[t] = Chunk::load(row + in.y.cols);
      }
#pragma unroll
      for (int r = 0; r < kRows; ++r) {
        const float4 a = q[r][chunk][0][lane], b = q[r][chunk][1][lane];
        const float query[] = {a.x, a.y, a.z, a.w, b.x, b.y, b.z, b.w};
        float s[kAtOnce], new_max = softmax[r].max;
#pragma unroll
        for (int t = 0; t < kAtOnce; ++t) {
          float part = 0;
#pragma unroll
          for (int m = 0; m < kNumbers; ++m) part += query[m] * k[t].at(m);
          part = across_lanes(part, kLanes, WarpSum{});
          s[t] = u + t < n ? part : -INFINITY;
          new_max = fmaxf(new_max, s[t]);
        }
        softmax[r].raise_max(new_max);
#pragma unroll
        for (int t = 0; t < kAtOnce; ++t) softmax[r].add(s[t], v[t]);
      }
    }
    write(in, first, count, softmax);
  }

  // For each chunk, merges the partial sums of its kShares warps and writes the result.
  __device__ void write(const StepAttention<bf16>& in, int first, int count,
                        OnlineSoftmax (&softmax)[kRows]) {
    const int warp = static_cast<int>(threadIdx.x) / kWarp;
    const int lane = static_cast<int>(threadIdx.x) % kWarp;
    const int chunk = warp % kChunks, share = warp / kChunks;
    if (share > 0)
#pragma unroll
      for (int r = 0; r < kRows; ++r) partial_sums[share - 1][chunk][r][lane] = softmax[r];
    __syncthreads();
    if (share > 0) return;
#pragma unroll
    for (int r = 0; r < kRows; ++r) {
      if (r >= count) return;
      for (int w = 1; w < kShares; ++w) softmax[r].merge(partial_sums[w - 1][chunk][r][lane]);
      const float by = 1 / softmax[r].sum;
      float y[kNumbers];
#pragma unroll
      for (int k = 0; k < kNumbers; ++k) y[k] = softmax[r].y[k] * by;
      Chunk::of(y).store(in.y.row(first + r) + kNumbers * (lane + chunk * kWarp));
    }
  }
};

template <int kChunks, int kLanes>
__global__ void __launch_bounds__(kWarps* kWarp, kChunks > 2 ? 2 : 4)
    attend_same_source(const __grid_constant__ StepAttention<bf16> in, float scale) {
  __shared__ SameSourceRows<kChunks> same_source;
  const StepHeader& at = *in.control.header;
  const int first = static_cast<int>(blockIdx.x) * kWarps;
  const int row = first + static_cast<int>(threadIdx.x) / kWarp;
  if (first >= at.rows) return;
  if (SameSourceRows<kChunks>::have_same_source(in, at, first))
    return same_source.template attend<kLanes>(in, at, first, scale);
  if (row >= at.rows) return;
  RowReader<kChunks> reader{static_cast<int>(in.y.cols), {}, {}};
  reader.load_query(in.q.row(row), scale);
  read_words<kLanes>(reader, WordAddress<Words::source>{in, at, row}, 0, 1);
  reader.write(in.y.row(row));
}

template <int kChunks, int kLanes, Words kWords>
__global__ void __launch_bounds__(kWarps* kWarp, kChunks > 2 ? 2 : 4)
    attend_rows(const __grid_constant__ StepAttention<bf16> in, float scale, int warps) {
  __shared__ OnlineSoftmax partial_sums[kWarps - 1][kChunks][kWarp];
  const StepHeader& at = *in.control.header;
  const int warp = static_cast<int>(threadIdx.x) / kWarp, share = warp % warps;
  const int lane = static_cast<int>(threadIdx.x) % kWarp;
  const int row = static_cast<int>(blockIdx.x) * (kWarps / warps) + warp / warps;
  const bool alive = row < at.rows;
  RowReader<kChunks> reader{static_cast<int>(in.y.cols), {}, {}};
  if (alive) {
    reader.load_query(in.q.row(row), scale);
    if (kWords == Words::own && share == 0) store_new_word<kChunks>(in, at, row);
    read_words<kLanes>(reader, WordAddress<kWords>{in, at, row}, share, warps);
  }
  if (warps > 1) {
#pragma unroll
    for (int c = 0; c < kChunks; ++c)
      if (share > 0) partial_sums[share - 1][c][lane] = reader.softmax[c];
    __syncthreads();
    if (share == 0 && alive)
      for (int w = 1; w < warps; ++w)
#pragma unroll
        for (int c = 0; c < kChunks; ++c) reader.softmax[c].merge(partial_sums[w - 1][c][lane]);
  }
  if (alive && share == 0) reader.write(in.y.row(row));
}

template <Words kWords>
bool attend_whole(Cuda on, const StepAttention<bf16>& in) {
  const int64_t D = in.y.cols, size = D / in.heads, chunks = D / (kNumbers * kWarp);
  const auto aligned = [](const bf16* at) { return reinterpret_cast<uintptr_t>(at) % 16 == 0; };
  if (D % (kNumbers * kWarp) || (chunks != 1 && chunks != 2 && chunks != 4)) return false;
  if ((size != 64 && size != 128) || !aligned(in.q.data) || !aligned(in.y.data)) return false;
  const auto scale = static_cast<float>(kLog2e / std::sqrt(static_cast<double>(size)));
  const int warps = in.y.rows <= 256 ? kWarps : 1;
  const unsigned blocks = blocks_for(in.y.rows, kWarps / warps);
  const auto launch = [&]<int kChunks, int kLanes>() {
    if (kWords == Words::source && warps == 1)
      attend_same_source<kChunks, kLanes><<<blocks, kWarps * kWarp, 0, stream(on)>>>(in, scale);
    else
      attend_rows<kChunks, kLanes, kWords>
          <<<blocks, kWarps * kWarp, 0, stream(on)>>>(in, scale, warps);
  };
  const auto with_chunks = [&]<int kLanes>() {
    if (chunks == 1)
      launch.template operator()<1, kLanes>();
    else if (chunks == 2)
      launch.template operator()<2, kLanes>();
    else
      launch.template operator()<4, kLanes>();
  };
  if (size == 64)
    with_chunks.template operator()<8>();
  else
    with_chunks.template operator()<16>();
  check_launch("attend_rows");
  return true;
}

}  // namespace

bool attend_words_whole(Cuda on, const StepAttention<bf16>& in) {
  return attend_whole<Words::own>(on, in);
}
bool attend_source_whole(Cuda on, const StepAttention<bf16>& in) {
  return attend_whole<Words::source>(on, in);
}

}  // namespace fovea::kernel
