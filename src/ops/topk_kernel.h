#pragma once

#include <cstdint>

#include "tensor/device.h"
#include "tensor/matrix.h"

namespace fovea::kernel {

// For each row of x, computes log_sum = log Σ_j exp(x_j) and the values.cols largest entries, the
// largest first. Of equal entries, the lower column is first. If a row has fewer entries that are
// not NaN, the missing ones have column −1.
template <class T>
void top_k(Cpu, Matrix<const T> x, T* log_sum, Matrix<T> values, Matrix<int32_t> columns);
template <class T>
void top_k(Cuda, Matrix<const T> x, T* log_sum, Matrix<T> values, Matrix<int32_t> columns);

// p += share · softmax(x), row by row, for one of several tensors x; `share` is its weight in the
// mean. For the first tensor, OutputMode::set overwrites p.
template <class T>
void add_probabilities(Cpu, Matrix<const T> x, T share, OutputMode fold, Matrix<T> p);
template <class T>
void add_probabilities(Cuda, Matrix<const T> x, T share, OutputMode fold, Matrix<T> p);

}  // namespace fovea::kernel
