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

// Whether a kernel that gives a gradient overwrites its output or adds to what is there.
enum class Fold { set, add };

template <class T>
constexpr void fold_into(T& to, Fold fold, T value) {
  to = fold == Fold::add ? to + value : value;
}

}  // namespace fovea
