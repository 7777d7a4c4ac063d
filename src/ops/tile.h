#pragma once

#include <cstdint>

// Small products for inside other kernels: matrices of a sentence's size, in registers and the
// first cache.
namespace fovea::kernel {

// The widest vector the instruction set has (16, 32 or 64 bytes).
inline constexpr int64_t kVectorBytes = __BIGGEST_ALIGNMENT__;

template <class T>
inline constexpr int64_t kLanes = kVectorBytes / static_cast<int64_t>(sizeof(T));

template <class T>
constexpr int64_t padded(int64_t n) {
  return (n + kLanes<T> - 1) / kLanes<T> * kLanes<T>;
}

template <class T>
struct Vector {
  typedef T type __attribute__((vector_size(kVectorBytes), aligned(sizeof(T)), may_alias));
};

// C = A B, or C += A B: A [m, k] with row stride lda, B [k, n], C [m, n].
// REQUIRES: n and ldb are multiples of kLanes<T>.
template <class T, int kRows>
void tile_rows(int64_t n, int64_t k, const T* A, int64_t lda, const T* B, int64_t ldb, T* C,
               int64_t ldc, bool add) {
  using V = typename Vector<T>::type;
  for (int64_t j = 0; j < n; j += kLanes<T>) {
    V sum[kRows];
    for (int r = 0; r < kRows; ++r)
      sum[r] = add ? *reinterpret_cast<const V*>(C + r * ldc + j) : V{};
    for (int64_t l = 0; l < k; ++l) {
      const V b = *reinterpret_cast<const V*>(B + l * ldb + j);
      for (int r = 0; r < kRows; ++r) sum[r] += A[r * lda + l] * b;
    }
    for (int r = 0; r < kRows; ++r) *reinterpret_cast<V*>(C + r * ldc + j) = sum[r];
  }
}

template <class T>
void tile_product(int64_t m, int64_t n, int64_t k, const T* A, int64_t lda, const T* B, int64_t ldb,
                  T* C, int64_t ldc, bool add = false) {
  int64_t i = 0;
  for (; i + 8 <= m; i += 8) tile_rows<T, 8>(n, k, A + i * lda, lda, B, ldb, C + i * ldc, ldc, add);
  for (; i < m; ++i) tile_rows<T, 1>(n, k, A + i * lda, lda, B, ldb, C + i * ldc, ldc, add);
}

}  // namespace fovea::kernel
