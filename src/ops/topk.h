#pragma once

#include <span>

#include "tensor/tensor.h"

namespace fovea {

// The k largest entries of each row of scores, and what turns scores into log-probabilities.
struct TopK {
  Tensor log_sum;  // [rows]: log Σ exp
  Tensor values;   // [rows, k], largest first
  Tensor columns;  // [rows, k] i32, equal values by column; −1 where there is no entry
};

// x [rows, n]; k may exceed n.
TopK top_k(const Tensor& x, int64_t k);
// What top_k returned, brought to the host in one copy.
TopK on_host(const TopK& best);

// The mean over several tensors of scores of softmax(x), row by row.
Tensor mean_probabilities(std::span<const Tensor> scores);

}  // namespace fovea
