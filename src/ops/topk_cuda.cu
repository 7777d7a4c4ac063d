#include <cfloat>

#include "ops/topk_kernel.h"
#include "tensor/cuda.h"
#include "tensor/pack.cuh"
#include "tensor/warp.cuh"

namespace fovea::kernel {
namespace {

constexpr int kThreads = 256;
constexpr int kPool = 4 * kThreads;  // maximum number of candidates in shared memory
constexpr float kLog2e = 1.44269504f;

// The rank of an entry in its row: a number that is higher for better entries. A larger value has a
// higher rank; of equal values, the lower column has the higher rank. No two entries of a row have
// the same rank, except that NaN has rank 0.
using Rank = unsigned long long;

__device__ Rank rank_of(float value, int column) {
  if (value != value) return 0;
  const uint32_t bits = __float_as_uint(value + 0.0f);  // adding 0 turns −0 into 0
  const uint32_t rising = bits >> 31 ? ~bits : bits | 0x80000000u;
  return Rank{rising} << 32 | (0xFFFFFFFFu - static_cast<uint32_t>(column));
}
__device__ int column_of(Rank rank) {
  return static_cast<int>(0xFFFFFFFFu - static_cast<uint32_t>(rank));
}

__device__ float power_of_two(float x) {
  float y;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}

// Σ exp(x − top), where `top` is the largest x so far.
struct RunningSum {
  float top = -FLT_MAX, sum = 0;

  template <int kWide>
  __device__ void add(const Pack<kWide>& x, float largest) {
    if (largest > top) {
      sum *= exp2f((top - largest) * kLog2e);
      top = largest;
    }
#pragma unroll
    for (int m = 0; m < kWide; ++m) sum += power_of_two((x.at[m] - top) * kLog2e);
  }
  // The RunningSum of the numbers of all threads of the block.
  __device__ RunningSum of_block() const {
    const float most = across_block(top, WarpMax{}, -FLT_MAX);
    return {most, across_block(sum * exp2f((top - most) * kLog2e), WarpSum{}, 0.0f)};
  }
};

template <int kWide>
__device__ float largest_of(const Pack<kWide>& x) {
  float largest = x.at[0];
#pragma unroll
  for (int m = 1; m < kWide; ++m) largest = fmaxf(largest, x.at[m]);
  return largest;
}

// A reader of one row for a block. A pack is kWide adjacent entries; pack p belongs to thread p mod
// kThreads. Each thread starts kAhead loads before it uses the first pack.
template <int kWide, int kAhead>
struct RowReader {
  static constexpr int kTurn = kThreads * kWide;  // columns per turn: a pack per thread
  const float* x;
  int cols;

  __device__ int turns() const { return (cols + kTurn - 1) / kTurn; }
  __device__ static int owner(int column) { return column / kWide % kThreads; }

  // Calls body(pack, its first column) for each pack of this thread.
  template <class Body>
  __device__ void each_own(Body body) const {
    for (int first = static_cast<int>(threadIdx.x) * kWide; first < cols; first += kAhead * kTurn) {
      Pack<kWide> packs[kAhead];
#pragma unroll
      for (int t = 0; t < kAhead; ++t)
        if (first + t * kTurn < cols) packs[t] = load<kWide>(x + first + t * kTurn);
#pragma unroll
      for (int t = 0; t < kAhead; ++t)
        if (first + t * kTurn < cols) body(packs[t], first + t * kTurn);
    }
  }

  // The highest rank below `limit` among this thread's entries. Also adds the entries to `running`.
  __device__ Rank own_best(Rank limit, RunningSum& running) const {
    float best = -INFINITY;
    int column = -1;
    each_own([&](const Pack<kWide>& values, int at) {
      const float largest = largest_of(values);
      running.add(values, largest);
      if (column >= 0 && !(largest > best)) return;
#pragma unroll
      for (int m = 0; m < kWide; ++m) {  // columns ascend, so the first of equal values is kept
        const float value = values.at[m];
        if (column >= 0 ? !(value > best) : value != value) continue;
        if (rank_of(value, at + m) >= limit) continue;
        best = value;
        column = at + m;
      }
    });
    return column < 0 ? 0 : rank_of(best, column);
  }

  // The rank of the entry with index `number` among the entries of thread `owner`; 0 if there is no
  // such entry.
  __device__ Rank of_owner(int owner, int number) const {
    const int column = number / kWide * kTurn + owner * kWide + number % kWide;
    return column < cols ? rank_of(x[column], column) : 0;
  }
};

// A bitonic sort in descending order. REQUIRES: count is a power of two.
__device__ void sort(Rank* pool, int count) {
  for (int size = 2; size <= count; size *= 2)
    for (int step = size / 2; step > 0; step /= 2) {
      __syncthreads();
      for (int t = static_cast<int>(threadIdx.x); t < count / 2; t += kThreads) {
        const int i = 2 * t - (t & (step - 1)), j = i + step;
        const Rank a = pool[i], b = pool[j];
        const bool falling = (i & size) == 0;
        if ((a < b) != falling) continue;
        pool[i] = b;
        pool[j] = a;
      }
    }
  __syncthreads();
}

// Sorts the first `count` ranks in descending order. For this, pads them with rank 0 to a power of
// two that is at least `at_least`.
__device__ void sort_up_to(Rank* pool, int count, int at_least) {
  int size = 1;
  while (size < count || size < at_least) size *= 2;
  for (int t = count + static_cast<int>(threadIdx.x); t < size; t += kThreads) pool[t] = 0;
  sort(pool, size);
}

// Note [Top k by owners]
// Each of 256 threads finds its best entry, in one pass over its packs of the row. The owners are
// the k threads with the highest best entries. The k best entries of the row all belong to owners,
// and each of them ranks at least as high as the lowest best entry of an owner. So only the entries
// of the owners are read again, and few of them are candidates. The order in which threads store
// candidates does not matter, because the candidates are sorted.
struct Workspace {
  Rank pool[kPool];
  int owners[kThreads];
  int count;
};

// Sets pool[0 … wanted) to the highest ranks below `limit`, and to 0 if there are no more.
// REQUIRES: the pool holds the best rank of each thread, sorted.
template <int kWide, int kAhead>
__device__ void select(const RowReader<kWide, kAhead>& row, Rank limit, int wanted, Workspace& w) {
  const int thread = static_cast<int>(threadIdx.x);
  const Rank own = thread < wanted ? w.pool[thread] : 0;
  Rank least = w.pool[wanted - 1];
  if (own) w.owners[thread] = RowReader<kWide, kAhead>::owner(column_of(own));
  if (thread == 0) w.count = 0;
  const int owners = __syncthreads_count(own != 0);

  const int each = row.turns() * kWide, total = owners * each;
  const auto candidate = [&](int t) {
    return t < total ? row.of_owner(w.owners[t / each], t % each) : 0;
  };
  if (total <= kPool) {  // all candidates fit: all their loads are in flight together
    Rank ranks[kPool / kThreads];
#pragma unroll
    for (int i = 0; i < kPool / kThreads; ++i) ranks[i] = candidate(i * kThreads + thread);
#pragma unroll
    for (const Rank rank : ranks)
      if (rank && rank >= least && rank < limit) w.pool[atomicAdd(&w.count, 1)] = rank;
    __syncthreads();
    return sort_up_to(w.pool, w.count, wanted);
  }
  for (int first = 0; first < total; first += kThreads) {
    const Rank rank = candidate(first + thread);
    if (rank && rank >= least && rank < limit) w.pool[atomicAdd(&w.count, 1)] = rank;
    __syncthreads();
    const int count = w.count;
    __syncthreads();
    if (count <= kPool - kThreads) continue;
    sort_up_to(w.pool, count, kPool);
    least = w.pool[wanted - 1];
    if (thread == 0) w.count = wanted;
    __syncthreads();
  }
  sort_up_to(w.pool, w.count, wanted);
}

// If there are many rows, throughput matters: each block first reads and then sorts, so many blocks
// should run at a time. So 8 blocks share a multiprocessor, and each prefetches little. If there
// are few rows, latency matters: 2 blocks share a multiprocessor, and each prefetches more.
constexpr int kManyRows = 264;
template <int kWide, int kAhead>
__global__ void __launch_bounds__(kThreads, kAhead > 2 ? 2 : 8)
    top_of_rows(Matrix<const float> x, float* log_sum, Matrix<float> values,
                Matrix<int32_t> columns) {
  __shared__ Workspace w;
  const int64_t i = blockIdx.x;
  const RowReader<kWide, kAhead> row{x.row(i), static_cast<int>(x.cols)};
  const int k = static_cast<int>(values.cols), thread = static_cast<int>(threadIdx.x);
  Rank limit = ~Rank{0};
  for (int done = 0; done < k; done += kThreads) {  // more than one pass only if k exceeds kThreads
    const int wanted = min(k - done, kThreads);
    RunningSum running;
    w.pool[thread] = row.own_best(limit, running);
    running = running.of_block();
    if (done == 0 && thread == 0) log_sum[i] = running.top + logf(running.sum);
    sort(w.pool, kThreads);
    select(row, limit, wanted, w);
    if (thread < wanted) {
      const Rank rank = w.pool[thread];
      values.row(i)[done + thread] = rank ? row.x[column_of(rank)] : -INFINITY;
      columns.row(i)[done + thread] = rank ? column_of(rank) : -1;
    }
    limit = w.pool[wanted - 1];
    __syncthreads();
  }
}

template <int kWide>
__global__ void add_softmax(Matrix<const float> x, float share, OutputMode fold, Matrix<float> p) {
  const RowReader<kWide, 4> row{x.row(blockIdx.x), static_cast<int>(x.cols)};
  float* out = p.row(blockIdx.x);
  RunningSum running;
  row.each_own([&](const Pack<kWide>& in, int) { running.add(in, largest_of(in)); });
  running = running.of_block();
  const float scale = share / running.sum;
  row.each_own([&](const Pack<kWide>& in, int at) {
    Pack<kWide>& to = *reinterpret_cast<Pack<kWide>*>(out + at);
    Pack<kWide> sum = fold == OutputMode::add ? to : Pack<kWide>{};
#pragma unroll
    for (int m = 0; m < kWide; ++m) sum.at[m] += scale * expf(in.at[m] - running.top);
    to = sum;
  });
}

}  // namespace

template <class T>
void top_k(Cuda on, Matrix<const T> x, T* log_sum, Matrix<T> values, Matrix<int32_t> columns) {
  if (x.rows == 0) return;
  const unsigned blocks = static_cast<unsigned>(x.rows);
  const bool fours = x.cols % 4 == 0 && at_fours(x.data), many = x.rows > kManyRows;
  auto* kernel = !fours ? top_of_rows<1, 2> : many ? top_of_rows<4, 2> : top_of_rows<4, 8>;
  kernel<<<blocks, kThreads, 0, stream(on)>>>(x, log_sum, values, columns);
  check_launch("top_k");
}

template <class T>
void add_probabilities(Cuda on, Matrix<const T> x, T share, OutputMode fold, Matrix<T> p) {
  if (x.rows == 0) return;
  const unsigned blocks = static_cast<unsigned>(x.rows);
  auto* kernel = x.cols % 4 == 0 && at_fours(x.data, p.data) ? add_softmax<4> : add_softmax<1>;
  kernel<<<blocks, kThreads, 0, stream(on)>>>(x, share, fold, p);
  check_launch("add_probabilities");
}

template void top_k(Cuda, Matrix<const float>, float*, Matrix<float>, Matrix<int32_t>);
template void add_probabilities(Cuda, Matrix<const float>, float, OutputMode, Matrix<float>);

}  // namespace fovea::kernel
