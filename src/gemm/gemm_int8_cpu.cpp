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

#include "base/spin_lock.h"
#include "gemm/amx.h"
#include "gemm/amx_tiles.h"
#include "gemm/gemm_kernel.h"
#include "gemm/int8_dot.h"
#include "gemm/onednn.h"
#include "gemm/small_gemm.h"

namespace fovea::kernel {
namespace {

using dnnl::memory;

// Note [Eight bits]
// An 8-bit product approximates x_ik ≈ s_i (u_ik − l) and W_jk ≈ t_j q_jk, with integers u and q.
// The scales s_i and t_j make the maxima of |u_ik − l| and of |q_jk| over k equal to 127. The
// constant l = 128 (kLift) makes u unsigned, because processors multiply unsigned bytes by signed
// bytes:
//   y_ij = s_i t_j (Σ_k u_ik q_jk − l Σ_k q_jk) + b_j
// Both sums are integers, so they are the same in any order and on any processor. The code calls
// the second term, l Σ_k q_jk, `lifted`.
constexpr int32_t kLift = 128;

enum class Instructions { tiles, vnni, avx2, plain };

Instructions instructions() {
  static const Instructions best = [] {
    if (has_tiles()) return Instructions::tiles;
    if (kVectorBytes >= 64 && __builtin_cpu_supports("avx512vnni")) return Instructions::vnni;
    return kVectorBytes >= 32 ? Instructions::avx2 : Instructions::plain;
  }();
  return best;
}

// The size of the tiles of y that a thread computes one after another. The sums of a tile are
// scaled while they are in the cache of the core that computed them.
constexpr int64_t kTileRows = 64, kTileColumns = 256;

// If a product has fewer multiplications, it uses one thread, because waking threads takes time.
constexpr int64_t kWorthTiles = 1 << 19;

// A scope in which OpenMP regions that this thread starts have one thread. Otherwise oneDNN would
// start a team of threads for each tile, which takes longer than the work on a small tile.
class SingleThreadScope {
 public:
  SingleThreadScope() : before_(omp_get_max_threads()) { omp_set_num_threads(1); }
  ~SingleThreadScope() { omp_set_num_threads(before_); }
  SingleThreadScope(const SingleThreadScope&) = delete;
  SingleThreadScope& operator=(const SingleThreadScope&) = delete;

 private:
  int before_;
};

// Sets to[j] = x[j] / scale + lifted_by, rounded. Returns the scale, which makes max |x| / scale
// equal to `most`. If a number of x is not finite, the scale is not finite.
float quantise(const float* x, int64_t n, int32_t most, int32_t lifted_by, uint8_t* to) {
  int32_t top_bits = 0;  // the bits of |x|, which compare as integers
#pragma omp simd reduction(max : top_bits)
  for (int64_t j = 0; j < n; ++j)
    top_bits = std::max(top_bits, std::bit_cast<int32_t>(x[j]) & 0x7fffffff);
  const float top = std::bit_cast<float>(top_bits);
  const float by = top > 1e-30f ? static_cast<float>(most) / top : 0.0f;
  // 1.5 · 2^23: the low bits of x + shift are the integer nearest to x.
  const float shift = 12582912.0f;
  for (int64_t j = 0; j < n; ++j)
    to[j] = static_cast<uint8_t>(std::bit_cast<int32_t>(x[j] * by + shift) + lifted_by);
  return top / static_cast<float>(most);
}

// W in 8 bits. Each panel holds the weights for kTileColumns columns of y, in the layout that
// ByteFactors::b describes.
struct Weights {
  std::vector<float> scales;    // t_j
  std::vector<int32_t> lifted;  // l Σ_k q_jk
  std::vector<PackedMatrix> panels;
};

// The number of bytes of a row of x in 8 bits. It is padded to whole rows of AMX tiles. The columns
// of W have the same padding.
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
    const SingleThreadScope single_thread;
    const memory plain({{k, columns}, memory::data_type::s8, memory::dims{1, k}}, engine(),
                       values.data());
    w.panels.push_back(
        reordered(plain, {{k, columns}, memory::data_type::s8, memory::format_tag::BA16a16b4a}));
  }
  return weights;
}

// The 8-bit copies of weights, by address and size of W. All threads share them.
struct KeptWeights {
  std::mutex mutex;
  std::map<std::tuple<const float*, int64_t, int64_t>, std::shared_ptr<const Weights>> all;
  uint64_t generation = 0;
};

// Returns the stored 8-bit copy of W. If there is none, makes and stores it.
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

// The buffers of a thread: a block of rows of x in 8 bits, the scales of these rows, and the sums
// of a tile.
struct ThreadBuffers {
  int64_t block = -1;
  std::vector<uint8_t> values;
  float scales[kTileRows];
  int32_t sums[kTileRows * kTileColumns];
};

// Computes the sums of `rows` rows by AMX. The row stride of `sums` is kTileColumns.
void sum_in_tiles(const ThreadBuffers& buffers, int64_t rows, int64_t k, const PanelOfTiles& b,
                  int32_t* sums) {
  TilesInUse use;
  const int64_t row = stride(k), depth = row / kTileRowBytes;
  const auto from = [&](int64_t i) -> TileSource {
    const char* const first = reinterpret_cast<const char*>(buffers.values.data()) + i * row;
    return {{first, first + kTile * row}, row, kTileRowBytes};
  };
  const auto to = [&](int64_t i, int64_t j) -> TileSums {
    return {nullptr, 0, sums + i * kTileColumns + j, kTileColumns * int64_t{sizeof(int32_t)}};
  };
  int64_t i = 0;
  use.set_rows(kTile);
  for (; i + kSquare <= rows; i += kSquare)
    for (int64_t j = 0; j < b.columns; j += kSquare) {
      const TileSums c[] = {to(i, j), to(i, j + kTile), to(i + kTile, j), to(i + kTile, j + kTile)};
      multiply_square<TileType::bytes>(from(i), b.tiles(j, 2), depth, c);
    }
  for (; i < rows; i += kTile) {
    use.set_rows(std::min(kTile, rows - i));
    for (int64_t j = 0; j < b.columns; j += kStrip) {
      const TileSums c[] = {to(i, j), to(i, j + kTile), to(i, j + 2 * kTile), to(i, j + 3 * kTile)};
      multiply_strip<TileType::bytes>(from(i), b.tiles(j, 4), depth, c);
    }
  }
}

template <int kRows>
using Count = std::integral_constant<int, kRows>;

// Calls f(Count<rows>()), which has the number of rows as a compile-time constant. REQUIRES: 1 ≤
// rows ≤ kMaxRows.
template <int kMaxRows, class F>
void with_rows(int64_t rows, F f) {
  if (rows == kMaxRows) return f(Count<kMaxRows>());
  if constexpr (kMaxRows > 1) with_rows<kMaxRows - 1>(rows, f);
}

// A range of y: the rows first_row … first_row + rows − 1, and the columns first … first + columns
// − 1.
struct OutputPart {
  int64_t first_row, rows, first, columns;
};

// A product y = x Wᵀ + bias in 8 bits. y is divided into tiles: one for each pair of a block of
// rows and a panel of columns. Tile t is block t / panels() and panel t % panels().
struct Int8Gemm {
  Matrix<const float> x;
  const Weights& w;
  const float* bias;
  Matrix<float> y;
  int64_t block_rows;

  int64_t count() const { return blocks(x.rows, block_rows) * panels(); }
  int64_t panels() const { return static_cast<int64_t>(w.panels.size()); }

  void scale(const float* scales, const OutputPart& part, ByteSums from) const {
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

  // Computes the columns of y that begin at column j of a panel: at most kColumnsOfStrip columns, a
  // strip. With VNNI, the sums are scaled in registers, otherwise while they are in the first-level
  // cache.
  void multiply_strip(const OutputPart& part, const PanelOfTiles& panel, int64_t j,
                      ThreadBuffers& buffers) const {
    const TileSource b = panel.tiles(j, kBlocksOfStrip);
    ByteFactors f{buffers.values.data(), stride(x.cols), {}, blocks(x.cols, 4)};
    std::ranges::copy(b.first, f.b);
    const int64_t most = instructions() == Instructions::vnni ? kVnniRows : kAvx2Rows;
    for (int64_t i = 0; i < part.rows; i += most, f.a += most * f.a_row) {
      const ByteResults to = results(part, i, buffers);
      const ByteSums sums{buffers.sums + i * kColumnsOfStrip, kColumnsOfStrip};
      with_rows<kVnniRows>(std::min(most, part.rows - i), [&]<int kRows>(Count<kRows>) {
        if (instructions() == Instructions::vnni)
          multiply_bytes_vnni<kRows>(f, to);
        else if (instructions() == Instructions::avx2)
          sum_bytes_avx2<kRows>(f, sums);
        else
          sum_bytes_plainly<kRows>(f, sums);
      });
    }
    if (instructions() != Instructions::vnni)
      scale(buffers.scales, part, {buffers.sums, kColumnsOfStrip});
  }

  ByteResults results(const OutputPart& part, int64_t i, const ThreadBuffers& buffers) const {
    const int64_t j = part.first;
    return {.y = y.row(part.first_row + i) + j,
            .row = y.cols,
            .s = buffers.scales + i,
            .t = w.scales.data() + j,
            .bias = bias ? bias + j : nullptr,
            .lifted = w.lifted.data() + j,
            .columns = part.columns};
  }

  void quantise_rows(const OutputPart& part, ThreadBuffers& buffers) const {
    const int64_t k = x.cols, row_bytes = stride(k);
    buffers.values.resize(static_cast<size_t>(kTileRows * row_bytes));
    for (int64_t i = 0; i < part.rows; ++i) {
      uint8_t* const to = buffers.values.data() + i * row_bytes;
      buffers.scales[i] = quantise(x.row(part.first_row + i), k, kLift - 1, kLift, to);
      std::fill(to + k, to + row_bytes, uint8_t{0});
    }
  }

  void multiply(int64_t tile, ThreadBuffers& buffers) const {
    const int64_t block = tile / panels(), panel = tile % panels(), k = x.cols;
    OutputPart part{.first_row = block * block_rows,
                    .rows = std::min(block_rows, x.rows - block * block_rows),
                    .first = panel * kTileColumns,
                    .columns = std::min(kTileColumns, y.cols - panel * kTileColumns)};
    if (buffers.block != block) quantise_rows(part, buffers);
    buffers.block = block;
    const memory& kept = w.panels[static_cast<size_t>(panel)].values;
    const PanelOfTiles b{static_cast<const char*>(kept.get_data_handle()), kTile * stride(k),
                         part.columns};
    if (instructions() == Instructions::tiles) {
      sum_in_tiles(buffers, part.rows, k, b, buffers.sums);
      return scale(buffers.scales, part, {buffers.sums, kTileColumns});
    }
    for (int64_t j = 0; j < b.columns; j += kColumnsOfStrip) {
      part.columns = std::min(kColumnsOfStrip, b.columns - j);
      multiply_strip(part, b, j, buffers);
      part.first += kColumnsOfStrip;
    }
  }
};

// Computes the tiles of thread `me` of `threads` threads, which have adjacent numbers. So if there
// are many rows, each thread has rows of its own; if there are few rows, it has columns of its own.
void multiply_part(const Int8Gemm& gemm, int64_t me, int64_t threads) {
  const int64_t tiles = gemm.count();
  thread_local ThreadBuffers buffers;
  buffers.block = -1;
  for (int64_t tile = tiles * me / threads; tile < tiles * (me + 1) / threads; ++tile)
    gemm.multiply(tile, buffers);
}

}  // namespace

void matmul_int8(Cpu, Matrix<const float> x, Matrix<const float> W, const float* bias,
                 Matrix<float> y) {
  if (y.size() == 0) return;
  const int64_t block_rows = blocks(x.rows, blocks(x.rows, kTileRows));
  const auto kept = weights(W);
  const Int8Gemm gemm{x, *kept, bias, y, block_rows};
  if (y.size() * x.cols <= kWorthTiles) return multiply_part(gemm, 0, 1);
  std::exception_ptr failed;
#pragma omp parallel
  try {
    multiply_part(gemm, omp_get_thread_num(), omp_get_num_threads());
  } catch (...) {  // an exception must not leave a parallel region
#pragma omp critical
    failed = std::current_exception();
  }
  if (failed) std::rethrow_exception(failed);
}

}  // namespace fovea::kernel
