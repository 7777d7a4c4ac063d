#pragma once

#include <immintrin.h>

#include <algorithm>
#include <cstdint>

// AMX as kernels use it. REQUIRES of everything here: has_tiles().
namespace fovea::kernel {

// Note [Tiles]
// AMX has eight tiles of 16 rows of 64 bytes. One instruction adds to 16 × 16 sums of float32 the
// product of 16 rows of 32 numbers of bf16 and 32 rows of 16, of which two rows stand in one:
//   c_ij += Σ_p a_i,2p b_2p,j + a_i,2p+1 b_2p+1,j
// Of 8 bits it takes 64 numbers, four rows stand in one, and sums are whole numbers.
// Four tiles hold sums of 32 × 32, the others two tiles of a and two of b; of the last rows they
// hold sums of 16 × 64. A sum goes over all of k in its order, so that it depends on nothing but
// its row of a and its column of b.
//
// oneDNN would do the same, but asks CPUID's leaf 0x1D for the shape of a tile. Virtual machines
// may have AMX and hide that leaf, where its code ends the program as illegal. There is one shape.

inline constexpr int64_t kTile = 16, kTileRowBytes = 64, kTileBytes = kTile * kTileRowBytes;
inline constexpr int64_t kSquare = 2 * kTile, kStrip = 4 * kTile;

inline int64_t blocks(int64_t n, int64_t size) { return (n + size - 1) / size; }

// Rows of tiles 0 to 3, of sums, and 4 and 5, of a, may be fewer.
struct alignas(64) Shapes {
  uint8_t palette = 1, start_row = 0, reserved[14] = {};
  uint16_t row_bytes[16] = {64, 64, 64, 64, 64, 64, 64, 64};
  uint8_t rows[16] = {16, 16, 16, 16, 16, 16, 16, 16};
};

// While one lives, this thread may use tiles.
class TilesInUse {
 public:
  TilesInUse() = default;
  // To be called first, and before products of other numbers of rows.
  [[gnu::target("amx-tile")]] void set_rows(int64_t rows) {
    Shapes shapes;
    std::fill_n(shapes.rows, 6, static_cast<uint8_t>(rows));
    asm volatile("" ::: "memory");  // GCC 12 knows of 8 bytes alone that are read, of tiles of none
    _tile_loadconfig(&shapes);
  }
  // GCC 12 does not see that upper halves of vectors are in use, with which others' code is slow.
  [[gnu::target("amx-tile,avx")]] ~TilesInUse() {
    _tile_release();
    _mm256_zeroupper();
  }
  TilesInUse(const TilesInUse&) = delete;
  TilesInUse& operator=(const TilesInUse&) = delete;
};

// Up to four tiles of a factor, and those behind them in the direction of k.
struct Tiles {
  const char* first[4];
  int64_t row;   // bytes from one row of a tile to the next
  int64_t deep;  // from a tile to the one behind it
};

// Where the sums of a tile come from (null: from 0) and go to; rows are so many bytes apart.
struct Sums {
  const void* from;
  int64_t from_row;
  void* to;
  int64_t to_row;
};

[[gnu::target("amx-tile")]] inline void begin_sums(const Sums* c) {
  asm volatile("" ::: "memory");  // as above
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

[[gnu::target("amx-tile")]] inline void end_sums(const Sums* c) {
  _tile_stored(0, c[0].to, c[0].to_row);
  _tile_stored(1, c[1].to, c[1].to_row);
  _tile_stored(2, c[2].to, c[2].to_row);
  _tile_stored(3, c[3].to, c[3].to_row);
}

enum class Numbers { bf16, bytes };  // bytes: of a without a sign, of b with one

// Two tiles of rows with two of columns: 32 × 32 sums.
template <Numbers numbers>
[[gnu::target("amx-tile,amx-bf16,amx-int8")]] void multiply_square(const Tiles& a, const Tiles& b,
                                                                   int64_t depth, const Sums* c) {
  begin_sums(c);
  for (int64_t d = 0; d < depth; ++d) {
    _tile_loadd(6, b.first[0] + d * b.deep, b.row);
    _tile_loadd(4, a.first[0] + d * a.deep, a.row);
    if constexpr (numbers == Numbers::bf16) {
      _tile_dpbf16ps(0, 4, 6);
    } else {
      _tile_dpbusd(0, 4, 6);
    }
    _tile_loadd(7, b.first[1] + d * b.deep, b.row);
    if constexpr (numbers == Numbers::bf16) {
      _tile_dpbf16ps(1, 4, 7);
    } else {
      _tile_dpbusd(1, 4, 7);
    }
    _tile_loadd(5, a.first[1] + d * a.deep, a.row);
    if constexpr (numbers == Numbers::bf16) {
      _tile_dpbf16ps(2, 5, 6);
    } else {
      _tile_dpbusd(2, 5, 6);
    }
    if constexpr (numbers == Numbers::bf16) {
      _tile_dpbf16ps(3, 5, 7);
    } else {
      _tile_dpbusd(3, 5, 7);
    }
  }
  end_sums(c);
}

// One tile of rows with four of columns.
template <Numbers numbers>
[[gnu::target("amx-tile,amx-bf16,amx-int8")]] void multiply_strip(const Tiles& a, const Tiles& b,
                                                                  int64_t depth, const Sums* c) {
  begin_sums(c);
  for (int64_t d = 0; d < depth; ++d) {
    _tile_loadd(4, a.first[0] + d * a.deep, a.row);
    _tile_loadd(6, b.first[0] + d * b.deep, b.row);
    if constexpr (numbers == Numbers::bf16) {
      _tile_dpbf16ps(0, 4, 6);
    } else {
      _tile_dpbusd(0, 4, 6);
    }
    _tile_loadd(7, b.first[1] + d * b.deep, b.row);
    if constexpr (numbers == Numbers::bf16) {
      _tile_dpbf16ps(1, 4, 7);
    } else {
      _tile_dpbusd(1, 4, 7);
    }
    _tile_loadd(6, b.first[2] + d * b.deep, b.row);
    if constexpr (numbers == Numbers::bf16) {
      _tile_dpbf16ps(2, 4, 6);
    } else {
      _tile_dpbusd(2, 4, 6);
    }
    _tile_loadd(7, b.first[3] + d * b.deep, b.row);
    if constexpr (numbers == Numbers::bf16) {
      _tile_dpbf16ps(3, 4, 7);
    } else {
      _tile_dpbusd(3, 4, 7);
    }
  }
  end_sums(c);
}

// Columns of b in tiles; those of the next 16 columns are `next` bytes behind.
struct PanelOfTiles {
  const char* first;
  int64_t next, columns;

  // From column j on. Where there are no columns any more, the first ones are taken again.
  Tiles tiles(int64_t j, int64_t count) const {
    Tiles t{{}, kTileRowBytes, kTileBytes};
    for (int64_t q = 0; q < count; ++q)
      t.first[q] = first + (j + q * kTile < columns ? j / kTile + q : j / kTile) * next;
    return t;
  }
};

}  // namespace fovea::kernel
