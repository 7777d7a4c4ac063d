#pragma once

#include <cstdint>
#include <limits>
#include <utility>

// Vector code for other kernels: products of matrices as large as a sentence, in registers and the
// first-level cache, and the maximum of many numbers.
namespace fovea::kernel {

// The size of the widest vector of the instruction set: 16, 32 or 64 bytes.
inline constexpr int64_t kVectorBytes = __BIGGEST_ALIGNMENT__;

template <class T>
inline constexpr int64_t kLanes = kVectorBytes / static_cast<int64_t>(sizeof(T));

template <class T>
constexpr int64_t padded(int64_t n) {
  return (n + kLanes<T> - 1) / kLanes<T> * kLanes<T>;
}

template <class T>
struct SimdVector {
  typedef T type __attribute__((vector_size(kVectorBytes), aligned(sizeof(T)), may_alias));
};

// The maximum of n numbers, or −∞ if n = 0. It ignores NaN. (The compiler does not vectorise
// std::max. If there is a NaN, the result of std::max depends on the order of the numbers.)
template <class T>
T largest(const T* x, int64_t n) {
  using V = typename SimdVector<T>::type;
  constexpr int64_t kSide = kLanes<T>;
  constexpr T kLowest = -std::numeric_limits<T>::infinity();
  V top[4];
  for (V& t : top) t = V{} + kLowest;
  int64_t j = 0;
  for (; j + 4 * kSide <= n; j += 4 * kSide)
    for (int64_t r = 0; r < 4; ++r) {
      const V v = *reinterpret_cast<const V*>(x + j + r * kSide);
      top[r] = v > top[r] ? v : top[r];
    }
  T best = kLowest;
  for (; j < n; ++j) best = x[j] > best ? x[j] : best;
  const V left = top[0] > top[1] ? top[0] : top[1], right = top[2] > top[3] ? top[2] : top[3];
  T lanes[kSide];
  *reinterpret_cast<V*>(lanes) = left > right ? left : right;
  for (int64_t half = kSide / 2; half > 0; half /= 2)
    for (int64_t l = 0; l < half; ++l)
      lanes[l] = lanes[l] > lanes[l + half] ? lanes[l] : lanes[l + half];
  return best > lanes[0] ? best : lanes[0];
}

// A matrix whose element (i, j) is data[i · row + j · col].
template <class T>
struct StridedMatrix {
  T* data;
  int64_t row, col = 1;
};

enum class SumKind { fresh, onto };  // fresh: C = A B; onto: C += A B

// C = A B or C += A B for kRows rows of A and C. n is the number of columns of C, k the number of
// products per sum.
template <class T, int kRows>
void tile_rows(int64_t n, int64_t k, StridedMatrix<const T> A, StridedMatrix<const T> B,
               StridedMatrix<T> C, SumKind kind) {
  using V = typename SimdVector<T>::type;
  for (int64_t j = 0; j < n; j += kLanes<T>) {
    V sum[kRows];
    for (int r = 0; r < kRows; ++r)
      sum[r] = kind == SumKind::onto ? *reinterpret_cast<const V*>(C.data + r * C.row + j) : V{};
    for (int64_t l = 0; l < k; ++l) {
      const V b = *reinterpret_cast<const V*>(B.data + l * B.row + j);
      for (int r = 0; r < kRows; ++r) sum[r] += A.data[r * A.row + l * A.col] * b;
    }
    for (int r = 0; r < kRows; ++r) *reinterpret_cast<V*>(C.data + r * C.row + j) = sum[r];
  }
}

// Like tile_rows(), but for `rows` rows. REQUIRES: 0 ≤ rows ≤ kRows.
template <class T, int kRows>
void tile_rest(int64_t rows, int64_t n, int64_t k, StridedMatrix<const T> A,
               StridedMatrix<const T> B, StridedMatrix<T> C, SumKind kind) {
  if (rows == kRows) return tile_rows<T, kRows>(n, k, A, B, C, kind);
  if constexpr (kRows > 1) tile_rest<T, kRows - 1>(rows, n, k, A, B, C, kind);
}

// C = A B or C += A B: A [m, k], B [k, n], C [m, n]. REQUIRES: n is a multiple of kLanes<T>, and in
// B and C adjacent columns are adjacent in memory (col = 1).
template <class T>
void tile_product(int64_t m, int64_t n, int64_t k, StridedMatrix<const T> A,
                  StridedMatrix<const T> B, StridedMatrix<T> C, SumKind kind = SumKind::fresh) {
  constexpr int kRows = 8;
  for (; m >= kRows; m -= kRows) {
    tile_rows<T, kRows>(n, k, A, B, C, kind);
    A.data += kRows * A.row;
    C.data += kRows * C.row;
  }
  tile_rest<T, kRows - 1>(m, n, k, A, B, C, kind);
}

// Returns alternating elements of a and b: a[kFirst], b[kFirst], a[kFirst + 1], …
template <int kFirst, class V, int... I>
V interleaved(V a, V b, std::integer_sequence<int, I...>) {
  return __builtin_shufflevector(a, b,
                                 (kFirst + I / 2 + (I % 2) * static_cast<int>(sizeof...(I)))...);
}

// Transposes kLanes × kLanes elements. Only the first `rows` rows of `from` exist; the other rows
// count as zeros.
template <class T>
void tile_transpose(int64_t rows, StridedMatrix<const T> from, StridedMatrix<T> to) {
  using V = typename SimdVector<T>::type;
  constexpr int kSide = static_cast<int>(kLanes<T>);
  constexpr std::make_integer_sequence<int, kSide> lanes;
  V x[kSide], y[kSide];
#pragma GCC unroll 16
  for (int i = 0; i < kSide; ++i)
    x[i] = i < rows ? *reinterpret_cast<const V*>(from.data + i * from.row) : V{};
#pragma GCC unroll 4
  for (int step = 1; step < kSide; step *= 2) {
#pragma GCC unroll 8
    for (int i = 0; i < kSide / 2; ++i) {
      y[2 * i] = interleaved<0>(x[i], x[i + kSide / 2], lanes);
      y[2 * i + 1] = interleaved<kSide / 2>(x[i], x[i + kSide / 2], lanes);
    }
#pragma GCC unroll 16
    for (int i = 0; i < kSide; ++i) x[i] = y[i];
  }
#pragma GCC unroll 16
  for (int i = 0; i < kSide; ++i) *reinterpret_cast<V*>(to.data + i * to.row) = x[i];
}

}  // namespace fovea::kernel
