#pragma once

#include <immintrin.h>

#include <cstdint>
#include <cstring>

// Sums of products of unsigned bytes of a and signed bytes of b: sum_ij = Σ_k a_ik b_kj for kRows
// rows i and 64 columns j. There is a version for each kind of instructions.
namespace fovea::kernel {

inline constexpr int64_t kColumnsOfBlock = 16, kBlocksOfStrip = 4;
inline constexpr int64_t kColumnsOfStrip = kColumnsOfBlock * kBlocksOfStrip;

// The operands. b is divided into blocks of 16 columns. A block is a sequence of `quads` groups of
// 64 bytes. Such a group is called a quad. Quad n has four numbers of each column: k = 4n … 4n + 3
// of the first column, then of the second column, and so on.
struct ByteFactors {
  const uint8_t* a;
  int64_t a_row;  // number of bytes from one row of a to the next
  const char* b[kBlocksOfStrip];
  int64_t quads;

  int32_t four(int64_t row, int64_t quad) const {
    int32_t bytes = 0;
    std::memcpy(&bytes, a + row * a_row + quad * 4, sizeof bytes);
    return bytes;
  }
};

// The destination of sums. `row` is the number of elements from one row of sums to the next.
struct ByteSums {
  int32_t* to;
  int64_t row;
};

// The destination of results: y_ij = s_i t_j (sum_ij − lifted_j) + bias_j. The bytes of a are
// unsigned because a constant was added to them. lifted_j is the increase of the sums of column j
// by this constant.
struct ByteResults {
  float* y;
  int64_t row;            // number of elements from one row of y to the next
  const float* s;         // s: one per row; t, bias and lifted: one per column
  const float *t, *bias;  // bias may be absent
  const int32_t* lifted;
  int64_t columns;
};

// VNNI adds four products to a sum in one instruction. The registers hold the sums of 6 rows and 4
// blocks of 16 columns at a time. The results are stored directly from registers. So the stores for
// some rows overlap with the computation for the next rows.
inline constexpr int kVnniRows = 6;

template <int kRows>
[[gnu::target("avx512f,avx512vnni")]] void multiply_bytes_vnni(const ByteFactors& f,
                                                               const ByteResults& to) {
  __m512i s[kRows][kBlocksOfStrip];
#pragma GCC unroll 8
  for (auto& row : s)
#pragma GCC unroll 4
    for (__m512i& sum : row) sum = _mm512_setzero_si512();
  for (int64_t quad = 0; quad < f.quads; ++quad) {
    __m512i b[kBlocksOfStrip];
#pragma GCC unroll 4
    for (int c = 0; c < kBlocksOfStrip; ++c) b[c] = _mm512_loadu_si512(f.b[c] + quad * 64);
#pragma GCC unroll 8
    for (int r = 0; r < kRows; ++r) {
      const __m512i a = _mm512_set1_epi32(f.four(r, quad));
#pragma GCC unroll 4
      for (int c = 0; c < kBlocksOfStrip; ++c) s[r][c] = _mm512_dpbusd_epi32(s[r][c], a, b[c]);
    }
  }
#pragma GCC unroll 4
  for (int c = 0; c < kBlocksOfStrip; ++c) {
    const int64_t j = c * kColumnsOfBlock, left = to.columns - j;
    if (left <= 0) break;
    const auto here = static_cast<__mmask16>(left < kColumnsOfBlock ? (1 << left) - 1 : 0xffff);
    const __m512i lifted = _mm512_maskz_loadu_epi32(here, to.lifted + j);
    const __m512 t = _mm512_maskz_loadu_ps(here, to.t + j);
    const __m512 bias = to.bias ? _mm512_maskz_loadu_ps(here, to.bias + j) : _mm512_setzero_ps();
#pragma GCC unroll 8
    for (int r = 0; r < kRows; ++r) {
      const __m512 sum = _mm512_maskz_cvtepi32_ps(here, _mm512_sub_epi32(s[r][c], lifted));
      const __m512 scaled = _mm512_mul_ps(sum, _mm512_set1_ps(to.s[r]));
      _mm512_mask_storeu_ps(to.y + r * to.row + j, here, _mm512_fmadd_ps(scaled, t, bias));
    }
  }
}

// AVX2 multiplies 16-bit operands and adds pairs of products as 32-bit sums. Its instruction for
// 8-bit operands would overflow, because it adds pairs of products as 16-bit sums. Until the end, a
// register holds two partial sums per column.
inline constexpr int kAvx2Rows = 4;

template <int kRows>
[[gnu::target("avx2")]] void sum_bytes_avx2(const ByteFactors& f, ByteSums sums) {
  constexpr int64_t kColumns = 4;  // a register holds four 16-bit numbers of each of 4 columns
  for (int64_t j = 0; j < kColumnsOfStrip; j += 2 * kColumns) {
    const char* const b = f.b[j / kColumnsOfBlock] + j % kColumnsOfBlock * 4;
    __m256i left[kRows], right[kRows];
#pragma GCC unroll 8
    for (int r = 0; r < kRows; ++r) left[r] = right[r] = _mm256_setzero_si256();
    for (int64_t quad = 0; quad < f.quads; ++quad) {
      const auto* const four = reinterpret_cast<const __m128i*>(b + quad * 64);
      const __m256i b_left = _mm256_cvtepi8_epi16(_mm_loadu_si128(four)),
                    b_right = _mm256_cvtepi8_epi16(_mm_loadu_si128(four + 1));
#pragma GCC unroll 8
      for (int r = 0; r < kRows; ++r) {
        const __m256i a = _mm256_cvtepu8_epi16(_mm_set1_epi32(f.four(r, quad)));
        left[r] = _mm256_add_epi32(left[r], _mm256_madd_epi16(a, b_left));
        right[r] = _mm256_add_epi32(right[r], _mm256_madd_epi16(a, b_right));
      }
    }
#pragma GCC unroll 8
    for (int r = 0; r < kRows; ++r) {
      const __m256i all = _mm256_hadd_epi32(left[r], right[r]);  // sums of columns 0 1 4 5 2 3 6 7
      _mm256_storeu_si256(reinterpret_cast<__m256i*>(sums.to + r * sums.row + j),
                          _mm256_permute4x64_epi64(all, 0b11'01'10'00));
    }
  }
}

template <int kRows>
void sum_bytes_plainly(const ByteFactors& f, ByteSums sums) {
  for (int r = 0; r < kRows; ++r)
    for (int64_t j = 0; j < kColumnsOfStrip; ++j) {
      const auto* b =
          reinterpret_cast<const int8_t*>(f.b[j / kColumnsOfBlock]) + j % kColumnsOfBlock * 4;
      int32_t sum = 0;
      for (int64_t quad = 0; quad < f.quads; ++quad, b += 64)
        for (int i = 0; i < 4; ++i) sum += f.a[r * f.a_row + quad * 4 + i] * b[i];
      sums.to[r * sums.row + j] = sum;
    }
}

}  // namespace fovea::kernel
