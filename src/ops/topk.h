#pragma once

#include <span>

#include "tensor/tensor.h"

namespace fovea {

// The k largest entries of each row of scores. A score minus log_sum of its row is the
// log-probability.
struct TopK {
  Tensor log_sum;  // [rows]: log Σ exp of all scores of the row
  Tensor values;   // [rows, k], largest first
  Tensor columns;  // i32 [rows, k]; equal values: lower column first; −1: no entry
};

// The k largest entries of each row of x [rows, n]. k may exceed n.
TopK top_k(const Tensor& x, int64_t k);
// A copy of the result of top_k in host memory, made with one transfer.
TopK on_host(const TopK& best);

// The mean of softmax(x), row by row, over several tensors of scores x.
Tensor mean_probabilities(std::span<const Tensor> scores);

}  // namespace fovea
