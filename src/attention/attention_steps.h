#pragma once

#include <span>
#include <vector>

#include "base/computation_steps.h"
#include "tensor/tensor.h"

// Computation steps of the attention of one query, in double precision, for step-by-step
// explanations (`fovea show --explain`).
namespace fovea {

using DoubleRow = std::vector<double>;

std::vector<DoubleRow> rows_of(const Tensor& x);  // the n rows of x [n, m]
double dot(std::span<const double> a, std::span<const double> b);

DoubleRow softmax_of(const DoubleRow& e);  // REQUIRES: e is not empty

// Appends q, k_j and tanh(q + k_j), for the scores additive and concat. AddedNames holds the names
// of these three steps, such as "W_a s_t" for q.
struct AddedNames {
  const char *query, *key;
};
void add_tanh_of_sum(ComputationSteps& steps, const AddedNames& names, const DoubleRow& q,
                     const std::vector<DoubleRow>& keys);

// The steps of softmax(q Kᵀ / √d_k) V for one query (Vaswani et al.: Attention Is All You Need,
// NIPS 2017, section 3.2.1), given the keys and values of the words that are not masked. With
// relative positions, `distance_scores` has a number for each word, which is added to its score.
// REQUIRES: at least one word.
ComputationSteps scaled_dot_steps(const DoubleRow& q, const std::vector<DoubleRow>& keys,
                                  const std::vector<DoubleRow>& values,
                                  const DoubleRow& distance_scores = {});

// Appends v_j, α_j v_j and their sum, the last steps. SumNames holds the names of these steps.
struct SumNames {
  const char *value, *weighted, *sum, *formula;
};
void add_weighted_sum(ComputationSteps& steps, const DoubleRow& alpha,
                      const std::vector<DoubleRow>& values, const SumNames& names);

}  // namespace fovea
