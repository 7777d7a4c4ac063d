#include "attention/attention_steps.h"

#include <fmt/format.h>

#include <algorithm>
#include <cassert>
#include <cmath>
#include <numeric>

namespace fovea {

std::vector<DoubleRow> rows_of(const Tensor& x) {
  const std::vector<double> all = x.values();
  const std::ptrdiff_t cols = x.cols();
  std::vector<DoubleRow> rows;
  for (auto at = all.begin(); at != all.end(); at += cols) rows.emplace_back(at, at + cols);
  return rows;
}

double dot(std::span<const double> a, std::span<const double> b) {
  assert(a.size() == b.size());
  return std::inner_product(a.begin(), a.end(), b.begin(), 0.0);
}

DoubleRow softmax_of(const DoubleRow& e) {
  const double highest = std::ranges::max(e);
  DoubleRow p;
  for (const double x : e) p.push_back(std::exp(x - highest));
  const double sum = std::accumulate(p.begin(), p.end(), 0.0);
  for (double& x : p) x /= sum;
  return p;
}

void add_tanh_of_sum(ComputationSteps& steps, const AddedNames& names, const DoubleRow& q,
                     const std::vector<DoubleRow>& keys) {
  std::vector<DoubleRow> inner = keys;
  for (DoubleRow& row : inner)
    std::ranges::transform(row, q, row.begin(),
                           [](double k, double a) { return std::tanh(a + k); });
  const std::string query = names.query, key = names.key;
  steps.query(query, query + ": the decoder state, projected", q);
  steps.words(key, key + ": encoder states, projected", keys);
  steps.words("tanh", "tanh(" + query + " + " + key + ")", std::move(inner));
}

ComputationSteps scaled_dot_steps(const DoubleRow& q, const std::vector<DoubleRow>& keys,
                                  const std::vector<DoubleRow>& values,
                                  const DoubleRow& distance_scores) {
  const double root = std::sqrt(static_cast<double>(q.size()));
  DoubleRow products, scaled;
  for (const DoubleRow& k : keys) products.push_back(dot(q, k));
  for (const double product : products) scaled.push_back(product / root);
  DoubleRow e = scaled;
  for (size_t j = 0; j < distance_scores.size(); ++j) e[j] += distance_scores[j];
  const DoubleRow alpha = softmax_of(e);

  ComputationSteps steps;
  steps.query("q", "q = W_Q x + b_Q: the query", q);
  steps.words("k_j", "k_j = W_K x_j + b_K: the key of each word", keys);
  steps.sums("q·k_j", "q·k_j: how well query and key agree", products, {"q", "k_j"});
  steps.column("÷ √d_k", fmt::format("q·k_j / √d_k, with √{} = {:.4g}", q.size(), root), scaled);
  if (!distance_scores.empty()) {
    steps.column("b_j", "b_j: the learned score of the distance between the words",
                 distance_scores);
    steps.column("+ b_j", "e_j = q·k_j / √d_k + b_j", e);
  }
  steps.column("α_j", "α_j = softmax over the words: weights that sum to 1", alpha,
               ComputationStep::Display::share);
  add_weighted_sum(steps, alpha, values,
                   {"v_j", "α_j v_j", "Σ_j α_j v_j",
                    "Σ_j α_j v_j: sum of the values v_j = W_V x_j + b_V, the output of this head"});
  return steps;
}

void add_weighted_sum(ComputationSteps& steps, const DoubleRow& alpha,
                      const std::vector<DoubleRow>& values, const SumNames& names) {
  std::vector<DoubleRow> weighted = values;
  DoubleRow sum(values.front().size(), 0);
  for (size_t j = 0; j < values.size(); ++j)
    for (size_t i = 0; i < sum.size(); ++i) sum[i] += weighted[j][i] *= alpha[j];
  steps.words(names.value, names.formula, values);
  steps.words(names.weighted, "", std::move(weighted));
  steps.query(names.sum, "", std::move(sum));
}

}  // namespace fovea
