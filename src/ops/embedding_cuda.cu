#include <bit>
#include <cub/device/device_radix_sort.cuh>

#include "ops/dropout_lane.cuh"
#include "ops/embedding_kernel.h"
#include "tensor/cuda.h"
#include "tensor/memory.h"
#include "tensor/warp.cuh"

namespace fovea::kernel {
namespace {

constexpr int kThreads = 128;
constexpr int kEach = 8;   // columns per thread: one call of DropoutLane::factors() gives 8
constexpr int kTile = 16;  // words whose gradients one thread sums

// The columns first + kLanes · k, k < kEach, of one thread. The layout is that of the runs of
// DropoutLane.
template <int kLanes>
struct ThreadColumns {
  int64_t item, run;  // item: index of the word or tile; run: index of the run of columns
  int lane;
  int64_t first;

  __device__ ThreadColumns()
      : item(int64_t{blockIdx.x} * (kThreads / kLanes) + threadIdx.x / kLanes), run(blockIdx.y),
        lane(static_cast<int>(threadIdx.x) % kLanes), first(run * kEach * kLanes + lane) {}

  // Calls body(k, column) for those of the thread's columns that exist in the row.
  template <class Body>
  __device__ void each(int64_t cols, Body body) const {
#pragma unroll
    for (int k = 0; k < kEach; ++k)
      if (first + k * kLanes < cols) body(k, first + k * kLanes);
  }
  static dim3 blocks(int64_t items, int64_t cols) {
    return dim3(blocks_for(items, kThreads / kLanes), blocks_for(cols, kEach * kLanes));
  }
};

template <int kLanes>
__global__ void embed_words(EmbeddingInput<float> in, float scale, DropoutLane mask,
                            Matrix<float> y, Matrix<bf16> rounded) {
  const ThreadColumns<kLanes> at;
  if (at.item >= y.rows) return;
  const float* e = in.E.row(in.ids[at.item]);
  const float* p = in.P.data ? in.P.row(in.places[at.item]) : nullptr;
  float* out = y.row(at.item);
  float value[kEach], keep[kEach];
  at.each(y.cols, [&](int k, int64_t j) { value[k] = scale * e[j] + (p ? p[j] : 0.0f); });
  if (mask.on()) {
    mask.factors<kLanes>(at.item, at.run, at.lane, keep);
    at.each(y.cols, [&](int k, int64_t) { value[k] *= keep[k]; });
  }
  at.each(y.cols, [&](int k, int64_t j) { out[j] = value[k]; });
  if (rounded.data)
    at.each(y.cols, [&](int k, int64_t j) { rounded.row(at.item)[j] = to_bf16(value[k]); });
}

// Note [Gradient of a table]
// The words of the batch are sorted by their row of the table; words of the same row keep their
// order. So the words of each row are adjacent: they form a span. The sorted words are cut into
// tiles of 16. If a span lies within one tile, its gradients are summed and added to the table at
// once. If a span crosses edges of tiles, each tile stores its partial sum, and another kernel adds
// the partial sums. So the order of each sum depends only on the words, and the host need not read
// a size from the device.
struct SortedWords {
  const uint64_t* keys;  // high 32 bits: row of the table; low 32 bits: index of the word
  int64_t count;

  __device__ int64_t row(int64_t at) const { return static_cast<int64_t>(keys[at] >> 32); }
  __device__ int64_t word(int64_t at) const { return static_cast<int64_t>(keys[at] & 0xFFFFFFFFu); }
  // Whether the sorted words at − 1 and at belong to the same span.
  __device__ bool joined(int64_t at) const {
    return at > 0 && at < count && row(at - 1) == row(at);
  }
  __device__ int64_t end_of(int64_t tile) const { return min((tile + 1) * kTile, count); }
  __host__ __device__ int64_t tiles() const { return (count + kTile - 1) / kTile; }
};

__global__ void make_keys(const int32_t* ids, int64_t count, uint64_t* keys) {
  const int64_t i = int64_t{blockIdx.x} * kThreads + threadIdx.x;
  if (i < count) keys[i] = uint64_t{static_cast<uint32_t>(ids[i])} << 32 | static_cast<uint64_t>(i);
}

// The partial sums of spans that cross edges of tiles. A tile has two: `leading` for the span that
// begins before the tile, `trailing` for the span that begins in the tile and continues after it.
struct SpanParts {
  float* data;
  int64_t cols;

  __device__ float* leading(int64_t tile) const { return data + 2 * tile * cols; }
  __device__ float* trailing(int64_t tile) const { return leading(tile) + cols; }
};

template <int kLanes>
__global__ void sum_tiles(SortedWords words, Matrix<const float> dy, float scale, DropoutLane mask,
                          Matrix<float> dE, SpanParts parts) {
  constexpr int kAhead = 4;  // words whose gradients are loaded at the same time
  const ThreadColumns<kLanes> at;
  if (at.item >= words.tiles()) return;
  const int64_t begin = at.item * kTile, end = words.end_of(at.item);
  bool continued = words.joined(begin);
  const bool continues = words.joined(end);
  float sum[kEach] = {};
  for (int64_t first = begin; first < end; first += kAhead) {
    float d[kAhead][kEach];
#pragma unroll
    for (int n = 0; n < kAhead; ++n) {
      const float* from = dy.row(words.word(min(first + n, end - 1)));
      at.each(dy.cols, [&](int k, int64_t j) { d[n][k] = from[j]; });
    }
#pragma unroll
    for (int n = 0; n < kAhead; ++n) {
      const int64_t s = first + n;
      if (s >= end) break;
      float keep[kEach] = {1, 1, 1, 1, 1, 1, 1, 1};
      if (mask.on()) mask.factors<kLanes>(words.word(s), at.run, at.lane, keep);
      at.each(dy.cols, [&](int k, int64_t) { sum[k] += scale * d[n][k] * keep[k]; });
      const bool last = s + 1 == end;
      if (!last && words.joined(s + 1)) continue;
      float* part = continued           ? parts.leading(at.item)
                    : last && continues ? parts.trailing(at.item)
                                        : nullptr;
      float* row = dE.row(words.row(s));
      at.each(dy.cols, [&](int k, int64_t j) {
        if (part)
          part[j] = sum[k];
        else
          row[j] += sum[k];
        sum[k] = 0;
      });
      continued = false;
    }
  }
}

// Adds the partial sums of the span that begins in tile blockIdx.x and continues after it. If there
// is no such span, the block does nothing.
__global__ void join_parts(SortedWords words, SpanParts parts, Matrix<float> dE) {
  const int64_t tile = blockIdx.x, begin = tile * kTile, end = words.end_of(tile);
  if (!words.joined(end)) return;
  const int64_t row = words.row(end);
  if (words.joined(begin) && words.row(begin) == row) return;  // the span began before
  int64_t last = tile + 1;                                     // the last tile of the span
  for (bool more = true; more;) {
    const int64_t next = (last + 1 + threadIdx.x % kWarp) * kTile;
    const unsigned within = __ballot_sync(~0u, next < words.count && words.row(next) == row);
    last += __popc(within);
    more = within == ~0u;
  }
  const int64_t j = int64_t{blockIdx.y} * kThreads + threadIdx.x;
  if (j >= dE.cols) return;
  float sum = parts.trailing(tile)[j];
#pragma unroll 8
  for (int64_t t = tile + 1; t <= last; ++t) sum += parts.leading(t)[j];
  dE.row(row)[j] += sum;
}

Buffer scratch(int64_t count, std::size_t each, Cuda on) {
  return allocate(static_cast<std::size_t>(count) * each, on);
}

// Sorts the keys and returns the buffer that holds the sorted keys: `keys` or `other`.
const uint64_t* sort_keys(Cuda on, uint64_t* keys, uint64_t* other, int64_t count, int64_t rows) {
  const int bits = std::max(1, static_cast<int>(std::bit_width(static_cast<uint64_t>(rows - 1))));
  cub::DoubleBuffer<uint64_t> both(keys, other);
  auto sort = [&](void* buffer, std::size_t& bytes) {
    check_cuda(cub::DeviceRadixSort::SortKeys(buffer, bytes, both, static_cast<int>(count), 32,
                                              32 + bits, stream(on)),
               "sort of words");
  };
  std::size_t bytes = 0;
  sort(nullptr, bytes);
  const Buffer buffer = allocate(bytes, on);
  sort(buffer.get(), bytes);
  return both.Current();
}

template <int kLanes>
void add_to_table(Cuda on, const SortedWords& words, Matrix<const float> dy, float scale,
                  const DropoutLane& mask, Matrix<float> dE) {
  const Buffer buffer = scratch(2 * words.tiles() * dy.cols, sizeof(float), on);
  const SpanParts parts{reinterpret_cast<float*>(buffer.get()), dy.cols};
  sum_tiles<kLanes>
      <<<ThreadColumns<kLanes>::blocks(words.tiles(), dy.cols), kThreads, 0, stream(on)>>>(
          words, dy, scale, mask, dE, parts);
  check_launch("embed_grad");
  const dim3 blocks(static_cast<unsigned>(words.tiles()), blocks_for(dy.cols, kThreads));
  join_parts<<<blocks, kThreads, 0, stream(on)>>>(words, parts, dE);
  check_launch("embed_grad");
}

}  // namespace

template <class T>
void embed(Cuda on, const EmbeddingInput<T>& in, Matrix<T> y, Matrix<bf16> rounded) {
  if (y.size() == 0) return;
  const DropoutLane mask(in.dropout);
  const float scale = static_cast<float>(in.scale);
  auto launch = [&](auto* kernel, dim3 blocks) {
    kernel<<<blocks, kThreads, 0, stream(on)>>>(in, scale, mask, y, rounded);
  };
  if (y.cols <= DropoutLane::kShortRow)
    launch(embed_words<DropoutLane::kShort>,
           ThreadColumns<DropoutLane::kShort>::blocks(y.rows, y.cols));
  else
    launch(embed_words<DropoutLane::kLong>,
           ThreadColumns<DropoutLane::kLong>::blocks(y.rows, y.cols));
  check_launch("embed");
}

template <class T>
void embed_grad(Cuda on, const int32_t* ids, Matrix<const T> dy, double scale,
                const Dropout& dropout, Matrix<T> dE) {
  if (dy.size() == 0) return;
  const Buffer keys = scratch(dy.rows, sizeof(uint64_t), on);
  const Buffer other = scratch(dy.rows, sizeof(uint64_t), on);
  uint64_t* unsorted = reinterpret_cast<uint64_t*>(keys.get());
  make_keys<<<blocks_for(dy.rows, kThreads), kThreads, 0, stream(on)>>>(ids, dy.rows, unsorted);
  check_launch("embed_grad");
  const SortedWords words{
      sort_keys(on, unsorted, reinterpret_cast<uint64_t*>(other.get()), dy.rows, dE.rows), dy.rows};
  const float by = static_cast<float>(scale);
  if (dy.cols <= DropoutLane::kShortRow)
    add_to_table<DropoutLane::kShort>(on, words, dy, by, DropoutLane(dropout), dE);
  else
    add_to_table<DropoutLane::kLong>(on, words, dy, by, DropoutLane(dropout), dE);
}

template void embed(Cuda, const EmbeddingInput<float>&, Matrix<float>, Matrix<bf16>);
template void embed_grad(Cuda, const int32_t*, Matrix<const float>, double, const Dropout&,
                         Matrix<float>);

}  // namespace fovea::kernel
