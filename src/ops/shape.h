#pragma once

#include <vector>

#include "tensor/tensor.h"

namespace fovea {

// The same numbers in the same order with another shape.
Tensor reshape(const Tensor& x, Shape shape);

// Slices of a matrix [rows, columns], and concatenations of matrices.
Tensor rows(const Tensor& x, int64_t first, int64_t count);
Tensor columns(const Tensor& x, int64_t first, int64_t count);
Tensor concat_rows(const std::vector<Tensor>& parts);
Tensor concat_columns(const std::vector<Tensor>& parts);
inline Tensor concat(const Tensor& a, const Tensor& b) { return concat_columns({a, b}); }

// Overwrites `to` with the columns of `from` that begin at `first`. Both have the same number of
// rows. There is no gradient.
void copy_columns(const Tensor& from, int64_t first, const Tensor& to);

}  // namespace fovea
