#include <omp.h>

#include <algorithm>
#include <bit>
#include <exception>
#include <map>
#include <memory>
#include <mutex>
#include <tuple>
#include <type_traits>
#include <vector>

#include "base/brief_lock.h"
#include "ops/byte_sums.h"
#include "ops/matmul_kernel.h"
#include "ops/onednn.h"
#include "ops/tile.h"
#include "ops/tile_registers.h"
#include "ops/tiles.h"

namespace fovea::kernel {
namespace {

using dnnl::memory;

// Note [Eight bits]
// x_ik ≈ s_i (u_ik − l) and W_jk ≈ t_j q_jk, with s and t such that the largest |u − l| and |q| of
// a row are 127, and l = 128. u has no sign because processors multiply bytes without by bytes with
// a sign:
//   y_ij = s_i t_j (Σ_k u_ik q_jk − l Σ_k q_jk) + b_j
// Both sums are whole numbers, the same in any order, in any tile and on any processor.
constexpr int32_t kLift = 128;

enum class Way { tiles, vnni, avx2, plain };

Way way() {
  static const Way best = [] {
    if (has_tiles()) return Way::tiles;
    if (kVectorBytes >= 64 && __builtin_cpu_supports("avx512vnni")) return Way::vnni;
    return kVectorBytes >= 32 ? Way::avx2 : Way::plain;
  }();
  return best;
}

// Tiles of y. The sums of one are scaled while they are in the cache of the core that made them.
constexpr int64_t kTileRows = 64, kTileColumns = 256;

// Products below which one thread is done before others are awake.
constexpr int64_t kWorthTiles = 1 << 19;

// While one lives, what this thread calls has no threads but it. oneDNN would start a team for each
// tile otherwise, which takes longer than a small one.
class Alone {
 public:
  Alone() : before_(omp_get_max_threads()) { omp_set_num_threads(1); }
  ~Alone() { omp_set_num_threads(before_); }
  Alone(const Alone&) = delete;
  Alone& operator=(const Alone&) = delete;

 private:
  int before_;
};

// Writes x / scale + lifted_by, rounded, and returns the scale with which the largest |x| becomes
// `most`. What is not finite makes the scale so.
float quantise(const float* x, int64_t n, int32_t most, int32_t lifted_by, uint8_t* to) {
  int32_t top_bits = 0;  // |x| in the order of whole numbers
#pragma omp simd reduction(max : top_bits)
  for (int64_t j = 0; j < n; ++j)
    top_bits = std::max(top_bits, std::bit_cast<int32_t>(x[j]) & 0x7fffffff);
  const float top = std::bit_cast<float>(top_bits);
  const float by = top > 1e-30f ? static_cast<float>(most) / top : 0.0f;
  const float shift = 12582912.0f;  // 1.5 · 2^23: a sum with it ends in the nearest whole number
  for (int64_t j = 0; j < n; ++j)
    to[j] = static_cast<uint8_t>(std::bit_cast<int32_t>(x[j] * by + shift) + lifted_by);
  return top / static_cast<float>(most);
}

// W in 8 bits, for kTileColumns columns of y at a time in the order of ByteFactors::b.
struct Weights {
  std::vector<float> scales;    // t_j
  std::vector<int32_t> lifted;  // l Σ_k q_jk
  std::vector<Ordered> panels;
};

// Rows of x in 8 bits are filled up to whole rows of AMX's tiles, and so are columns of W.
int64_t stride(int64_t k) { return blocks(k, kTileRowBytes) * kTileRowBytes; }

std::shared_ptr<const Weights> packed_weights(Matrix<const float> W) {
  const auto weights = std::make_shared<Weights>();
  Weights& w = *weights;
  w.scales.resize(static_cast<size_t>(W.rows));
  w.lifted.resize(static_cast<size_t>(W.rows));
  const int64_t k = W.cols, widest = std::min(W.rows, kTileColumns);
  std::vector<uint8_t> values(static_cast<size_t>(widest * k));
  for (int64_t first = 0; first < W.rows; first += kTileColumns) {
    const int64_t columns = std::min(kTileColumns, W.rows - first);
#pragma omp parallel for schedule(static)
    for (int64_t j = 0; j < columns; ++j) {
      uint8_t* to = values.data() + j * k;
      w.scales[static_cast<size_t>(first + j)] = quantise(W.row(first + j), k, 127, 0, to);
      int32_t sum = 0;
      for (int64_t l = 0; l < k; ++l) sum += static_cast<int8_t>(to[l]);
      w.lifted[static_cast<size_t>(first + j)] = kLift * sum;
    }
    const Alone alone;
    const memory plain({{k, columns}, memory::data_type::s8, memory::dims{1, k}}, engine(),
                       values.data());
    w.panels.push_back(
        reordered(plain, {{k, columns}, memory::data_type::s8, memory::format_tag::BA16a16b4a}));
  }
  return weights;
}

// By address and size, for all threads.
struct KeptWeights {
  std::mutex mutex;
  std::map<std::tuple<const float*, int64_t, int64_t>, std::shared_ptr<const Weights>> all;
  uint64_t generation = 0;
};

// Packed, if it is not kept yet.
std::shared_ptr<const Weights> weights(Matrix<const float> W) {
  static KeptWeights* const kept = new KeptWeights;
  const BriefLock hold(kept->mutex);
  if (kept->generation != packed_generation()) {
    kept->all.clear();
    kept->generation = packed_generation();
  }
  std::shared_ptr<const Weights>& found = kept->all[{W.data, W.rows, W.cols}];
  if (!found) found = packed_weights(W);
  return found;
}

// What a thread works on: some rows of x in 8 bits, and sums of a tile.
struct Bench {
  int64_t block = -1;
  std::vector<uint8_t> values;
  float scales[kTileRows];
  int32_t sums[kTileRows * kTileColumns];
};

// Sums of some rows, kTileColumns apart, by AMX.
void sum_in_tiles(const Bench& bench, int64_t rows, int64_t k, const PanelOfTiles& b,
                  int32_t* sums) {
  TilesInUse use;
  const int64_t row = stride(k), depth = row / kTileRowBytes;
  const auto from = [&](int64_t i) -> Tiles {
    const char* const first = reinterpret_cast<const char*>(bench.values.data()) + i * row;
    return {{first, first + kTile * row}, row, kTileRowBytes};
  };
  const auto to = [&](int64_t i, int64_t j) -> Sums {
    return {nullptr, 0, sums + i * kTileColumns + j, kTileColumns * int64_t{sizeof(int32_t)}};
  };
  int64_t i = 0;
  use.set_rows(kTile);
  for (; i + kSquare <= rows; i += kSquare)
    for (int64_t j = 0; j < b.columns; j += kSquare) {
      const Sums c[] = {to(i, j), to(i, j + kTile), to(i + kTile, j), to(i + kTile, j + kTile)};
      multiply_square<Numbers::bytes>(from(i), b.tiles(j, 2), depth, c);
    }
  for (; i < rows; i += kTile) {
    use.set_rows(std::min(kTile, rows - i));
    for (int64_t j = 0; j < b.columns; j += kStrip) {
      const Sums c[] = {to(i, j), to(i, j + kTile), to(i, j + 2 * kTile), to(i, j + 3 * kTile)};
      multiply_strip<Numbers::bytes>(from(i), b.tiles(j, 4), depth, c);
    }
  }
}

template <int kRows>
using Count = std::integral_constant<int, kRows>;

// f with the number of rows, kMost at most, as a constant.
template <int kMost, class F>
void with_rows(int64_t rows, F f) {
  if (rows == kMost) return f(Count<kMost>());
  if constexpr (kMost > 1) with_rows<kMost - 1>(rows, f);
}

// Some of the rows and columns of y.
struct Part {
  int64_t first_row, rows, first, columns;
};

struct Job {
  Matrix<const float> x;
  const Weights& w;
  const float* bias;
  Matrix<float> y;
  int64_t block_rows;

  int64_t count() const { return blocks(x.rows, block_rows) * panels(); }
  int64_t panels() const { return static_cast<int64_t>(w.panels.size()); }

  void scale(const float* scales, const Part& part, ByteSums from) const {
    const float* const t = w.scales.data() + part.first;
    const int32_t* const lifted = w.lifted.data() + part.first;
    for (int64_t i = 0; i < part.rows; ++i) {
      const int32_t* sums = from.to + i * from.row;
      const float s = scales[i];
      float* to = y.row(part.first_row + i) + part.first;
      const float* const b = bias ? bias + part.first : nullptr;
      if (b)
#pragma omp simd
        for (int64_t j = 0; j < part.columns; ++j)
          to[j] = static_cast<float>(sums[j] - lifted[j]) * s * t[j] + b[j];
      else
#pragma omp simd
        for (int64_t j = 0; j < part.columns; ++j)
          to[j] = static_cast<float>(sums[j] - lifted[j]) * s * t[j];
    }
  }

  // A strip of columns of y, from j on of its panel. Sums that VNNI did not make are scaled while
  // they are in the first cache.
  void multiply_strip(const Part& part, const PanelOfTiles& panel, int64_t j, Bench& bench) const {
    const Tiles b = panel.tiles(j, kBlocksOfStrip);
    ByteFactors f{bench.values.data(), stride(x.cols), {}, blocks(x.cols, 4)};
    std::ranges::copy(b.first, f.b);
    const int64_t most = way() == Way::vnni ? kVnniRows : kAvx2Rows;
    for (int64_t i = 0; i < part.rows; i += most, f.a += most * f.a_row) {
      const ByteResults to = results(part, i, bench);
      const ByteSums sums{bench.sums + i * kColumnsOfStrip, kColumnsOfStrip};
      with_rows<kVnniRows>(std::min(most, part.rows - i), [&]<int kRows>(Count<kRows>) {
        if (way() == Way::vnni)
          multiply_bytes_vnni<kRows>(f, to);
        else if (way() == Way::avx2)
          sum_bytes_avx2<kRows>(f, sums);
        else
          sum_bytes_plainly<kRows>(f, sums);
      });
    }
    if (way() != Way::vnni) scale(bench.scales, part, {bench.sums, kColumnsOfStrip});
  }

  ByteResults results(const Part& part, int64_t i, const Bench& bench) const {
    const int64_t j = part.first;
    return {.y = y.row(part.first_row + i) + j,
            .row = y.cols,
            .s = bench.scales + i,
            .t = w.scales.data() + j,
            .bias = bias ? bias + j : nullptr,
            .lifted = w.lifted.data() + j,
            .columns = part.columns};
  }

  void quantise_rows(const Part& part, Bench& bench) const {
    const int64_t k = x.cols, apart = stride(k);
    bench.values.resize(static_cast<size_t>(kTileRows * apart));
    for (int64_t i = 0; i < part.rows; ++i) {
      uint8_t* const to = bench.values.data() + i * apart;
      bench.scales[i] = quantise(x.row(part.first_row + i), k, kLift - 1, kLift, to);
      std::fill(to + k, to + apart, uint8_t{0});
    }
  }

  void multiply(int64_t tile, Bench& bench) const {
    const int64_t block = tile / panels(), panel = tile % panels(), k = x.cols;
    Part part{.first_row = block * block_rows,
              .rows = std::min(block_rows, x.rows - block * block_rows),
              .first = panel * kTileColumns,
              .columns = std::min(kTileColumns, y.cols - panel * kTileColumns)};
    if (bench.block != block) quantise_rows(part, bench);
    bench.block = block;
    const memory& kept = w.panels[static_cast<size_t>(panel)].values;
    const PanelOfTiles b{static_cast<const char*>(kept.get_data_handle()), kTile * stride(k),
                         part.columns};
    if (way() == Way::tiles) {
      sum_in_tiles(bench, part.rows, k, b, bench.sums);
      return scale(bench.scales, part, {bench.sums, kTileColumns});
    }
    for (int64_t j = 0; j < b.columns; j += kColumnsOfStrip) {
      part.columns = std::min(kColumnsOfStrip, b.columns - j);
      multiply_strip(part, b, j, bench);
      part.first += kColumnsOfStrip;
    }
  }
};

// One of `threads` shares of all tiles. A thread has neighbouring tiles of the same rows: few rows
// are shared out by columns, and of many each thread has its own.
void multiply_share(const Job& job, int64_t me, int64_t threads) {
  const int64_t tiles = job.count();
  thread_local Bench bench;
  bench.block = -1;
  for (int64_t tile = tiles * me / threads; tile < tiles * (me + 1) / threads; ++tile)
    job.multiply(tile, bench);
}

}  // namespace

void matmul_int8(Cpu, Matrix<const float> x, Matrix<const float> W, const float* bias,
                 Matrix<float> y) {
  if (y.size() == 0) return;
  const int64_t block_rows = blocks(x.rows, blocks(x.rows, kTileRows));
  const auto kept = weights(W);
  const Job job{x, *kept, bias, y, block_rows};
  if (y.size() * x.cols <= kWorthTiles) return multiply_share(job, 0, 1);
  std::exception_ptr failed;
#pragma omp parallel
  try {
    multiply_share(job, omp_get_thread_num(), omp_get_num_threads());
  } catch (...) {  // none may leave the threads
#pragma omp critical
    failed = std::current_exception();
  }
  if (failed) std::rethrow_exception(failed);
}

}  // namespace fovea::kernel
