#pragma once

#include <cstdint>

namespace fovea {

// What a kernel sees of a tensor: the last axis as columns, all others as rows.
template <class T>
struct Matrix {
  T* data = nullptr;
  int64_t rows = 0, cols = 0;

  constexpr T* row(int64_t i) const { return data + i * cols; }
  constexpr int64_t size() const { return rows * cols; }
  constexpr operator Matrix<const T>() const { return {data, rows, cols}; }
};

// Numbers read or written below which one thread is done before others are awake.
inline constexpr int64_t kWorthThreads = 1 << 14;

// Whether a kernel that gives a gradient overwrites its output or adds to what is there.
enum class Fold { set, add };

template <class T>
constexpr void fold_into(T& to, Fold fold, T value) {
  to = fold == Fold::add ? to + value : value;
}

// to[j] = value(j) for j < n, or added. The choice is made outside the loops and nothing that
// value() reads may overlap `to`, so that both loops are vectorised.
template <class T, class Value>
void fold_row(T* to, int64_t n, Fold fold, Value value) {
  if (fold == Fold::add) {
#pragma omp simd
    for (int64_t j = 0; j < n; ++j) to[j] += value(j);
  } else {
#pragma omp simd
    for (int64_t j = 0; j < n; ++j) to[j] = value(j);
  }
}

}  // namespace fovea
