#pragma once

#include <span>

#include "tensor/tensor.h"

namespace fovea {

// The k largest entries of each row of scores, and log_sum, which turns scores into
// log-probabilities.
struct TopK {
  Tensor log_sum;  // [rows]: log Σ exp
  Tensor values;   // [rows, k], largest first
  Tensor columns;  // [rows, k] i32; lower column first if values are equal; −1: no entry
};

// The k largest entries of each row of x [rows, n]. k may exceed n.
TopK top_k(const Tensor& x, int64_t k);
// A copy of the result of top_k in host memory, made with one transfer.
TopK on_host(const TopK& best);

// The mean of softmax(x), row by row, over several tensors of scores x.
Tensor mean_probabilities(std::span<const Tensor> scores);

}  // namespace fovea
