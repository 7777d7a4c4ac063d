#include <cpuid.h>
#include <omp.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <exception>
#include <vector>

#include "gemm/amx.h"
#include "gemm/amx_tiles.h"

namespace fovea::kernel {
namespace {

constexpr int64_t kDepth = kTileRowBytes / 2;  // bf16 numbers per row of a tile
constexpr int64_t kMostDepth = 2048;           // maximum depth that one pass sums in tile registers
constexpr int64_t kCachedBytes = 1024 * 1024;  // bytes of b that stay cached for all rows of a
constexpr int64_t kWorthSharing = 1 << 20;     // minimum of multiply-adds for several threads

// An operand op(a) or op(b) of a product, in memory. A lane is a row of op(a) or a column of op(b),
// and k is the index within a lane.
struct Operand {
  Matrix<const bf16> values;
  bool lanes_are_rows;

  int64_t lanes() const { return lanes_are_rows ? values.rows : values.cols; }
  int64_t depth() const { return lanes_are_rows ? values.cols : values.rows; }
};

using TileRow [[gnu::vector_size(64)]] = uint32_t;  // a row of a tile: 16 pairs of numbers

// Sets out[i] to the numbers k … k + 31 of lane `lane` + i, with 0 past the end. REQUIRES:
// lanes_are_rows.
void read_lanes(const Operand& f, int64_t lane, int64_t k, TileRow* out) {
  const int64_t length = std::min(kDepth, f.depth() - k);
  for (int64_t i = 0; i < kTile; ++i) {
    out[i] = TileRow{};
    if (lane + i >= f.lanes()) continue;
    const bf16* const from = f.values.row(lane + i) + k;
    if (length == kDepth)
      std::memcpy(&out[i], from, sizeof(TileRow));
    else
      std::memcpy(&out[i], from, static_cast<size_t>(length) * sizeof(bf16));
  }
}

// Sets out[p] to the pairs of numbers k + 2p, k + 2p + 1 of the lanes `lane` … `lane` + 15, with 0
// past the end. REQUIRES: !lanes_are_rows.
void read_pairs(const Operand& f, int64_t lane, int64_t k, TileRow* out) {
  const bool whole = lane + kTile <= f.lanes() && k + kDepth <= f.depth();
  const auto number = [&](int64_t row, int64_t l) -> uint32_t {
    return row < f.depth() && l < f.lanes() ? f.values.row(row)[l].bits : 0;
  };
  for (int64_t p = 0; p < kTile; ++p) {
    const int64_t row = k + 2 * p;
    uint32_t pairs[kTile];
    if (whole) {
      const bf16 *const even = f.values.row(row) + lane, *const odd = f.values.row(row + 1) + lane;
      for (int64_t j = 0; j < kTile; ++j)
        pairs[j] = even[j].bits | static_cast<uint32_t>(odd[j].bits) << 16;
    } else {
      for (int64_t j = 0; j < kTile; ++j)
        pairs[j] = number(row, lane + j) | number(row + 1, lane + j) << 16;
    }
    std::memcpy(&out[p], pairs, sizeof(TileRow));
  }
}

// Transposes a matrix of 16 × 16 elements. An element is a pair of bf16 numbers. Exchanges
// off-diagonal blocks of 1 × 1 elements, then of 2 × 2, 4 × 4 and 8 × 8.
void transpose(TileRow* x) {
  for (int i = 0; i < 16; i += 2) {
    const TileRow a = x[i], b = x[i + 1];
    x[i] = __builtin_shufflevector(a, b, 0, 16, 2, 18, 4, 20, 6, 22, 8, 24, 10, 26, 12, 28, 14, 30);
    x[i + 1] =
        __builtin_shufflevector(a, b, 1, 17, 3, 19, 5, 21, 7, 23, 9, 25, 11, 27, 13, 29, 15, 31);
  }
  for (int i = 0; i < 16; i += i % 4 == 1 ? 3 : 1) {
    const TileRow a = x[i], b = x[i + 2];
    x[i] = __builtin_shufflevector(a, b, 0, 1, 16, 17, 4, 5, 20, 21, 8, 9, 24, 25, 12, 13, 28, 29);
    x[i + 2] =
        __builtin_shufflevector(a, b, 2, 3, 18, 19, 6, 7, 22, 23, 10, 11, 26, 27, 14, 15, 30, 31);
  }
  for (int i = 0; i < 16; i += i % 8 == 3 ? 5 : 1) {
    const TileRow a = x[i], b = x[i + 4];
    x[i] = __builtin_shufflevector(a, b, 0, 1, 2, 3, 16, 17, 18, 19, 8, 9, 10, 11, 24, 25, 26, 27);
    x[i + 4] =
        __builtin_shufflevector(a, b, 4, 5, 6, 7, 20, 21, 22, 23, 12, 13, 14, 15, 28, 29, 30, 31);
  }
  for (int i = 0; i < 8; ++i) {
    const TileRow a = x[i], b = x[i + 8];
    x[i] = __builtin_shufflevector(a, b, 0, 1, 2, 3, 4, 5, 6, 7, 16, 17, 18, 19, 20, 21, 22, 23);
    x[i + 8] =
        __builtin_shufflevector(a, b, 8, 9, 10, 11, 12, 13, 14, 15, 24, 25, 26, 27, 28, 29, 30, 31);
  }
}

// The layout of a tile. With `lanes`, a row has 32 numbers of one lane. With `pairs`, a row has one
// pair of numbers from each of 16 lanes.
enum class TileContent { lanes, pairs };

// Copies the numbers k … k + 32 depth − 1 of the lanes `lane` … `lane` + 16 count − 1 to tiles. The
// `depth` tiles of the same 16 lanes are adjacent.
void pack(const Operand& f, TileContent rows, int64_t lane, int64_t count, int64_t k, int64_t depth,
          char* to) {
  for (int64_t l = 0; l < count; ++l)
    for (int64_t d = 0; d < depth; ++d, to += kTileBytes) {
      TileRow tile[kTile];
      if (f.lanes_are_rows)
        read_lanes(f, lane + l * kTile, k + d * kDepth, tile);
      else
        read_pairs(f, lane + l * kTile, k + d * kDepth, tile);
      if (f.lanes_are_rows != (rows == TileContent::lanes)) transpose(tile);
      std::memcpy(to, tile, sizeof tile);
    }
}

// A reusable buffer of consecutive tiles.
class TileBuffer {
 public:
  char* take(int64_t tiles) {
    if (static_cast<int64_t>(tiles_.size()) < tiles) tiles_.resize(static_cast<size_t>(tiles));
    return tiles_.front().bytes;
  }

 private:
  struct alignas(64) Tile {
    char bytes[kTileBytes];
  };
  std::vector<Tile> tiles_;
};

// A range of indices: first … last − 1.
struct Range {
  int64_t first, last;
};

// The product of a range of rows of a and a range of columns of b.
class ProductPart {
 public:
  ProductPart(const GemmCall<float, bf16>& p, const void* kept_b, Range rows, Range columns)
      : p_(p), kept_b_(static_cast<const char*>(kept_b)), a_{p.a, p.a_side == Transposition::as_is},
        b_{p.b, p.b_side == Transposition::transposed}, rows_(rows), columns_(columns) {}

  void multiply() {
    const int64_t k = a_.depth();
    for (k_ = 0; k_ < k; k_ += kMostDepth) {
      depth_ = blocks(std::min(kMostDepth, k - k_), kDepth);
      const int64_t width = std::max(kCachedBytes / (depth_ * kTileBytes) / 4, int64_t{1}) * kStrip;
      for (int64_t j = columns_.first; j < columns_.last; j += width)
        multiply_columns({j, std::min(columns_.last, j + width)});
    }
  }

 private:
  void multiply_columns(Range columns) {
    const PanelOfTiles b = panel_of_b(columns);
    use_.set_rows(kTile);
    int64_t i = rows_.first;
    for (; i + kSquare <= rows_.last; i += kSquare) {
      const TileSource a = rows_of_a(i, kSquare);
      for (int64_t j = columns.first; j < columns.last; j += kSquare)
        multiply_one<Form::square>(a, b.tiles(j - columns.first, 2), i, {j, columns.last});
    }
    for (; i < rows_.last; i += kTile) {
      const int64_t rows = std::min(kTile, rows_.last - i);
      const TileSource a = rows_of_a(i, rows);
      use_.set_rows(rows);
      for (int64_t j = columns.first; j < columns.last; j += kStrip)
        multiply_one<Form::strip>(a, b.tiles(j - columns.first, 4), i, {j, columns.last});
    }
  }

  // The given columns of b as tiles: from kept_b_ if given, otherwise from a copy that this call
  // makes.
  PanelOfTiles panel_of_b(Range columns) const {
    if (kept_b_) {
      const int64_t next = blocks(a_.depth(), kDepth) * kTileBytes;
      return {kept_b_ + columns.first / kTile * next + k_ / kDepth * kTileBytes, next,
              columns.last - columns.first};
    }
    thread_local TileBuffer buffer;
    const int64_t tiles = blocks(columns.last - columns.first, kTile);
    char* const to = buffer.take(tiles * depth_);
    pack(b_, TileContent::pairs, columns.first, tiles, k_, depth_, to);
    return {to, depth_ * kTileBytes, columns.last - columns.first};
  }

  // Rows of a as tiles: in place if the numbers of this pass form whole tiles, otherwise a copy.
  TileSource rows_of_a(int64_t i, int64_t rows) const {
    if (a_.lanes_are_rows && k_ + depth_ * kDepth <= a_.depth()) {
      const int64_t row = a_.values.cols * static_cast<int64_t>(sizeof(bf16));
      const char* const first = reinterpret_cast<const char*>(a_.values.row(i) + k_);
      return {{first, first + kTile * row}, row, 64};
    }
    thread_local TileBuffer buffer;
    const int64_t tiles = blocks(rows, kTile);
    char* const to = buffer.take(tiles * depth_);
    pack(a_, TileContent::lanes, i, tiles, k_, depth_, to);
    return {{to, to + depth_ * kTileBytes}, 64, kTileBytes};
  }

  // The shape of the sums in the four tile registers: square 32 × 32, strip 16 × 64. Strips are for
  // the last rows.
  enum class Form { square, strip };

  template <Form form>
  void multiply_one(const TileSource& a, const TileSource& b, int64_t i, Range columns) {
    constexpr int64_t kAcross = form == Form::square ? 2 : 4;
    TileSums sums[4];
    for (int64_t q = 0; q < 4; ++q)
      sums[q] =
          begin(q, i + q / kAcross * kTile, {columns.first + q % kAcross * kTile, columns.last});
    if constexpr (form == Form::square)
      multiply_square<TileType::bf16>(a, b, depth_, sums);
    else
      multiply_strip<TileType::bf16>(a, b, depth_, sums);
    for (int64_t q = 0; q < 4; ++q)
      end(q, i + q / kAcross * kTile, {columns.first + q % kAcross * kTile, columns.last});
  }

  bool adds() const { return k_ > 0 || p_.fold == OutputMode::add; }
  const float* bias() const { return k_ == 0 ? p_.bias : nullptr; }
  // Whether the sums of a tile can be stored to c directly from the register.
  bool in_place(Range columns) const {
    return columns.first + kTile <= columns.last && !(adds() && bias());
  }

  TileSums begin(int64_t q, int64_t i, Range columns) {
    if (in_place(columns)) {
      float* const c = p_.c.row(i) + columns.first;
      const int64_t row = p_.c.cols * static_cast<int64_t>(sizeof(float));
      if (adds()) return {c, row, c, row};
      return {bias() ? bias() + columns.first : nullptr, 0, c, row};
    }
    std::fill_n(edge_[q], kTile * kTile, 0.0f);
    for (int64_t r = 0; r < std::min(kTile, rows_.last - i); ++r)
      for (int64_t j = columns.first; j < std::min(columns.last, columns.first + kTile); ++j)
        edge_[q][r * kTile + j - columns.first] =
            (adds() ? p_.c.row(i + r)[j] : 0.0f) + (bias() ? bias()[j] : 0.0f);
    return {edge_[q], 64, edge_[q], 64};
  }

  void end(int64_t q, int64_t i, Range columns) const {
    if (in_place(columns)) return;
    for (int64_t r = 0; r < std::min(kTile, rows_.last - i); ++r)
      for (int64_t j = columns.first; j < std::min(columns.last, columns.first + kTile); ++j)
        p_.c.row(i + r)[j] = edge_[q][r * kTile + j - columns.first];
  }

  const GemmCall<float, bf16>& p_;
  const char* kept_b_;
  Operand a_, b_;
  Range rows_, columns_;
  TilesInUse use_;
  int64_t k_ = 0, depth_ = 0;  // k: index of the first number of this pass; depth: its tiles
  alignas(64) float edge_[4][kTile * kTile];
};

}  // namespace

bool has_tiles() {
  static const bool has = [] {
    constexpr unsigned kFeatures = 7,
                       kNeeded = 1u << 22 | 1u << 24 | 1u << 25;  // bf16, tiles, int8
    constexpr long kAskFor = 0x1023, kTileData = 18;  // ARCH_REQ_XCOMP_PERM, of <asm/prctl.h>
    unsigned a, b, c, d = 0;
    return __get_cpuid_count(kFeatures, 0, &a, &b, &c, &d) && (d & kNeeded) == kNeeded &&
           syscall(SYS_arch_prctl, kAskFor, kTileData) == 0;
  }();
  return has;
}

dnnl::memory::desc order_of_tiles(int64_t k, int64_t n) {
  return {{k, n}, dnnl::memory::data_type::bf16, dnnl::memory::format_tag::BA16a16b2a};
}

// The rows are divided among the threads. With two threads, each half of the rows then stays with
// its thread (Note [Halves]). If there are few rows, the columns are divided instead.
void multiply_tiles(const GemmCall<float, bf16>& p, const void* kept_b) {
  const int64_t m = p.c.rows, n = p.c.cols;
  const int64_t k = p.a_side == Transposition::as_is ? p.a.cols : p.a.rows;
  const bool by_rows = m >= 512 || m >= n;
  const int64_t whole = by_rows ? m : n, step = by_rows ? 1 : kStrip;
  const bool worth = std::max(m, kTile) * n * k > kWorthSharing && !omp_in_parallel();
  std::exception_ptr failed;
#pragma omp parallel if (worth)
  try {
    const int64_t me = omp_get_thread_num(), threads = omp_get_num_threads();
    const auto boundary = [&](int64_t t) {
      return std::min(whole, blocks(blocks(whole, step) * t, threads) * step);
    };
    const Range mine{boundary(me), boundary(me + 1)};
    if (mine.first < mine.last)
      ProductPart(p, kept_b, by_rows ? mine : Range{0, m}, by_rows ? Range{0, n} : mine).multiply();
  } catch (...) {  // an exception must not leave a parallel region
#pragma omp critical
    failed = std::current_exception();
  }
  if (failed) std::rethrow_exception(failed);
}

}  // namespace fovea::kernel
