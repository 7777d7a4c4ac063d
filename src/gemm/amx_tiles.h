#pragma once

#include <immintrin.h>

#include <algorithm>
#include <cstdint>

// Building blocks of kernels with AMX. All functions require has_tiles().
namespace fovea::kernel {

// Note [Tiles]
// AMX has eight registers, called tiles, of 16 rows of 64 bytes. One instruction multiplies a
// matrix of 16 rows of 32 bf16 numbers by a matrix of 32 rows of 16. It adds the product to 16 × 16
// float32 sums. In the second matrix, two rows share one row of the tile:
//   c_ij += Σ_p a_i,2p b_2p,j + a_i,2p+1 b_2p+1,j
// For int8 the instruction multiplies rows of 64 numbers, four rows of the second matrix share one
// row of the tile, and the sums are integers. Four tiles hold 32 × 32 sums; the other four hold two
// tiles of a and two of b. For the last rows of a, four tiles hold 16 × 64 sums. A sum runs over
// all k in order, so it depends only on its row of a and its column of b.
//
// oneDNN uses AMX, too, but it reads the shape of a tile from CPUID leaf 0x1D. Some virtual
// machines have AMX and hide that leaf. On them oneDNN ends the program with an illegal
// instruction. Only one shape exists, so this code does not ask for it.

inline constexpr int64_t kTile = 16, kTileRowBytes = 64, kTileBytes = kTile * kTileRowBytes;
inline constexpr int64_t kSquare = 2 * kTile, kStrip = 4 * kTile;

inline int64_t blocks(int64_t n, int64_t size) { return (n + size - 1) / size; }

// The configuration of the tiles, in the format of the processor. For the last rows of a, the tiles
// 0 to 3 (sums) and 4 to 5 (a) have fewer than 16 rows.
struct alignas(64) Shapes {
  uint8_t palette = 1, start_row = 0, reserved[14] = {};
  uint16_t row_bytes[16] = {64, 64, 64, 64, 64, 64, 64, 64};
  uint8_t rows[16] = {16, 16, 16, 16, 16, 16, 16, 16};
};

// A scope in which this thread may use tiles. Its destructor releases them.
class TilesInUse {
 public:
  TilesInUse() = default;
  // Sets the number of rows of the tiles of sums and of a. Call it first, and again if that number
  // changes.
  [[gnu::target("amx-tile")]] void set_rows(int64_t rows) {
    Shapes shapes;
    std::fill_n(shapes.rows, 6, static_cast<uint8_t>(rows));
    asm volatile("" ::: "memory");  // GCC 12 ignores memory that tile instructions read
    _tile_loadconfig(&shapes);
  }
  // GCC 12 does not see that the upper halves of vector registers are in use, so it does not clear
  // them. Without _mm256_zeroupper() they would slow down other code.
  [[gnu::target("amx-tile,avx")]] ~TilesInUse() {
    _tile_release();
    _mm256_zeroupper();
  }
  TilesInUse(const TilesInUse&) = delete;
  TilesInUse& operator=(const TilesInUse&) = delete;
};

// Up to four columns of tiles of an operand. first[q] is the first tile of column q. The next tiles
// of a column follow in the direction of k.
struct TileSource {
  const char* first[4];
  int64_t row;         // bytes from one row of a tile to the next
  int64_t depth_step;  // bytes from a tile to the next tile in the direction of k
};

// The initial values (null: zeros) of the sums of a tile, and their destination. from_row and
// to_row are the number of bytes from one row to the next.
struct TileSums {
  const void* from;
  int64_t from_row;
  void* to;
  int64_t to_row;
};

[[gnu::target("amx-tile")]] inline void begin_sums(const TileSums* c) {
  asm volatile("" ::: "memory");  // see set_rows()
  if (c[0].from) {
    _tile_loadd(0, c[0].from, c[0].from_row);
  } else {
    _tile_zero(0);
  }
  if (c[1].from) {
    _tile_loadd(1, c[1].from, c[1].from_row);
  } else {
    _tile_zero(1);
  }
  if (c[2].from) {
    _tile_loadd(2, c[2].from, c[2].from_row);
  } else {
    _tile_zero(2);
  }
  if (c[3].from) {
    _tile_loadd(3, c[3].from, c[3].from_row);
  } else {
    _tile_zero(3);
  }
}

[[gnu::target("amx-tile")]] inline void end_sums(const TileSums* c) {
  _tile_stored(0, c[0].to, c[0].to_row);
  _tile_stored(1, c[1].to, c[1].to_row);
  _tile_stored(2, c[2].to, c[2].to_row);
  _tile_stored(3, c[3].to, c[3].to_row);
}

enum class TileType { bf16, bytes };  // bytes: unsigned in a, signed in b

// Multiplies two tiles of rows by two tiles of columns: 32 × 32 sums.
template <TileType numbers>
[[gnu::target("amx-tile,amx-bf16,amx-int8")]] void multiply_square(const TileSource& a,
                                                                   const TileSource& b,
                                                                   int64_t depth,
                                                                   const TileSums* c) {
  begin_sums(c);
  for (int64_t d = 0; d < depth; ++d) {
    _tile_loadd(6, b.first[0] + d * b.depth_step, b.row);
    _tile_loadd(4, a.first[0] + d * a.depth_step, a.row);
    if constexpr (numbers == TileType::bf16) {
      _tile_dpbf16ps(0, 4, 6);
    } else {
      _tile_dpbusd(0, 4, 6);
    }
    _tile_loadd(7, b.first[1] + d * b.depth_step, b.row);
    if constexpr (numbers == TileType::bf16) {
      _tile_dpbf16ps(1, 4, 7);
    } else {
      _tile_dpbusd(1, 4, 7);
    }
    _tile_loadd(5, a.first[1] + d * a.depth_step, a.row);
    if constexpr (numbers == TileType::bf16) {
      _tile_dpbf16ps(2, 5, 6);
    } else {
      _tile_dpbusd(2, 5, 6);
    }
    if constexpr (numbers == TileType::bf16) {
      _tile_dpbf16ps(3, 5, 7);
    } else {
      _tile_dpbusd(3, 5, 7);
    }
  }
  end_sums(c);
}

// Multiplies one tile of rows by four tiles of columns: 16 × 64 sums.
template <TileType numbers>
[[gnu::target("amx-tile,amx-bf16,amx-int8")]] void multiply_strip(const TileSource& a,
                                                                  const TileSource& b,
                                                                  int64_t depth,
                                                                  const TileSums* c) {
  begin_sums(c);
  for (int64_t d = 0; d < depth; ++d) {
    _tile_loadd(4, a.first[0] + d * a.depth_step, a.row);
    _tile_loadd(6, b.first[0] + d * b.depth_step, b.row);
    if constexpr (numbers == TileType::bf16) {
      _tile_dpbf16ps(0, 4, 6);
    } else {
      _tile_dpbusd(0, 4, 6);
    }
    _tile_loadd(7, b.first[1] + d * b.depth_step, b.row);
    if constexpr (numbers == TileType::bf16) {
      _tile_dpbf16ps(1, 4, 7);
    } else {
      _tile_dpbusd(1, 4, 7);
    }
    _tile_loadd(6, b.first[2] + d * b.depth_step, b.row);
    if constexpr (numbers == TileType::bf16) {
      _tile_dpbf16ps(2, 4, 6);
    } else {
      _tile_dpbusd(2, 4, 6);
    }
    _tile_loadd(7, b.first[3] + d * b.depth_step, b.row);
    if constexpr (numbers == TileType::bf16) {
      _tile_dpbf16ps(3, 4, 7);
    } else {
      _tile_dpbusd(3, 4, 7);
    }
  }
  end_sums(c);
}

// Columns of b as tiles of 16 columns. The tiles of the next 16 columns begin `next` bytes later.
struct PanelOfTiles {
  const char* first;
  int64_t next, columns;

  // The first tiles of `count` groups of 16 columns, beginning with column j. For a group past the
  // last column, returns the tile of column j instead.
  TileSource tiles(int64_t j, int64_t count) const {
    TileSource t{{}, kTileRowBytes, kTileBytes};
    for (int64_t q = 0; q < count; ++q)
      t.first[q] = first + (j + q * kTile < columns ? j / kTile + q : j / kTile) * next;
    return t;
  }
};

}  // namespace fovea::kernel
