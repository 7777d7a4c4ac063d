#pragma once

#include <cstdint>

namespace fovea {

// A kernel's view of a tensor as a matrix: the last axis gives the columns, all other axes give the
// rows.
template <class T>
struct Matrix {
  T* data = nullptr;
  int64_t rows = 0, cols = 0;

  constexpr T* row(int64_t i) const { return data + i * cols; }
  constexpr int64_t size() const { return rows * cols; }
  constexpr operator Matrix<const T>() const { return {data, rows, cols}; }
};

// If a kernel has fewer elements, it uses one thread, because waking other threads would take
// longer than the work.
inline constexpr int64_t kWorthThreads = 1 << 14;

// Whether a kernel overwrites its output (set) or adds to it (add). Gradients use both modes.
enum class OutputMode { set, add };

template <class T>
constexpr void fold_into(T& to, OutputMode fold, T value) {
  to = fold == OutputMode::add ? to + value : value;
}

// Sets to[j] = value(j) or to[j] += value(j) for j < n. REQUIRES: value() reads no memory that
// overlaps `to`. The branch is outside the loops, so the compiler can vectorise both loops.
template <class T, class Value>
void fold_row(T* to, int64_t n, OutputMode fold, Value value) {
  if (fold == OutputMode::add) {
#pragma omp simd
    for (int64_t j = 0; j < n; ++j) to[j] += value(j);
  } else {
#pragma omp simd
    for (int64_t j = 0; j < n; ++j) to[j] = value(j);
  }
}

}  // namespace fovea
