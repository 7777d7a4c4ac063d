#pragma once

#include <span>
#include <vector>

#include "base/steps.h"
#include "tensor/tensor.h"

// Attention of one query with its numbers, in double: what `fovea show --explain` prints.
namespace fovea {

using Row = std::vector<double>;

std::vector<Row> rows_of(const Tensor& x);  // of [n, m]
double dot(std::span<const double> a, std::span<const double> b);

Row softmax_of(const Row& e);  // not empty

// q, k_j and tanh(q + k_j), as the scores that add have them, under names such as "W_a s_t".
struct AddedNames {
  const char *query, *key;
};
void add_tanh_of_sum(Steps& steps, const AddedNames& names, const Row& q,
                     const std::vector<Row>& keys);

// softmax(q Kᵀ / √d_k) V of one query (Vaswani et al.: Attention Is All You Need, NIPS 2017,
// section 3.2.1). Keys and values of the words it may look at; at least one.
Steps scaled_dot_steps(const Row& q, const std::vector<Row>& keys, const std::vector<Row>& values);

// The last step: v_j, α_j v_j and their sum, under these names.
struct SumNames {
  const char *value, *weighted, *sum, *formula;
};
void add_weighted_sum(Steps& steps, const Row& alpha, const std::vector<Row>& values,
                      const SumNames& names);

}  // namespace fovea
