#pragma once

#include <vector>

#include "tensor/tensor.h"

namespace fovea {

// The same numbers in the same order under another shape.
Tensor reshape(const Tensor& x, Shape shape);

// Parts of a matrix [rows, columns] and matrices put together again.
Tensor rows(const Tensor& x, int64_t first, int64_t count);
Tensor columns(const Tensor& x, int64_t first, int64_t count);
Tensor below_each_other(const std::vector<Tensor>& parts);
Tensor side_by_side(const std::vector<Tensor>& parts);
inline Tensor concat(const Tensor& a, const Tensor& b) { return side_by_side({a, b}); }

// The values of columns first … of `from` over those of `to`, which has as many rows; no gradient.
void copy_columns(const Tensor& from, int64_t first, const Tensor& to);

}  // namespace fovea
