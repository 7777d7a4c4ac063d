#pragma once

#include <fmt/format.h>

#include <cmath>
#include <numeric>
#include <vector>

#include "attention/attention.h"
#include "ops/attention_window.h"
#include "ops/elementwise.h"
#include "ops/matmul.h"
#include "ops/shape.h"

namespace fovea {

// Window attention: a mixture of K Gaussian windows that only move forward. As in the paper, the
// weights φ are not normalised. Graves: Generating Sequences With Recurrent Neural Networks, 2013,
// section 5.1, eq. 46–51.
class WindowAttention : public Attention {
 public:
  int64_t K;
  Tensor W, b;  // [3K, state], [3K]: rows of α̂, β̂, κ̂

  WindowAttention(ParameterScope scope, int64_t state, int64_t K)
      : K(K), W(scope.declare("W", {3 * K, state}, ParameterInit::glorot(state, 3 * K))),
        b(scope.declare("b", {3 * K}, ParameterInit::constant(0))) {}

  SourceMemory remember(const Tensor& h, const SentenceOffsets& sentences) const override {
    return {h, {}, sentences};
  }

  AttentionResult attend(const AttentionQuery& query, const SourceMemory& memory,
                         const AttentionState& previous) const override {
    const RaggedQueries look{memory.sentences, query.sentence};
    const Tensor hat = linear(query.s, W, b);  // (α̂_t, β̂_t, κ̂_t) = W s_t + b
    const Tensor alpha_hat = columns(hat, 0, K), beta_hat = columns(hat, K, K);
    const Tensor step = exp(columns(hat, 2 * K, K));
    // κ_t = κ_{t−1} + exp(κ̂_t)
    const Tensor kappa = previous["kappa"] ? previous["kappa"] + step : step;
    const Tensor phi = mixture(alpha_hat, beta_hat, kappa, look);  // φ(t, j)
    return {.context = weighted_sum(phi, memory.h, look),          // c_t = Σ_j φ(t, j) h_j
            .weights = phi,
            .now = {.steps = previous.steps + 1, .tensors = {{"kappa", kappa}}},
            .shown = {{"kappa", kappa}}};
  }

  std::vector<NamedSeries> series() const override {
    return {{"kappa", "κ", NamedSeries::Kind::centres}};
  }
  // The weights in pictures: φ / Σ_j φ.
  Tensor drawn_weights(const Tensor& phi) const override {
    std::vector<double> drawn = phi.values();
    const size_t columns = static_cast<size_t>(phi.cols());
    for (size_t row = 0; row + columns <= drawn.size() && columns; row += columns) {
      double sum = 0;
      for (size_t j = row; j < row + columns; ++j) sum += drawn[j];
      for (size_t j = row; j < row + columns && sum > 0; ++j) drawn[j] /= sum;
    }
    return Tensor::of(phi.shape(), drawn, phi.type(), phi.device());
  }
  ContextNames context_names() const override { return {.weight = "φ_tj"}; }

  void explain(const AttentionQuery& query, const SourceMemory& memory, const AttentionState&,
               const AttentionResult& result, ComputationSteps& steps) const override {
    const Tensor hat = linear(query.s, W, b);
    steps.query("s_t", "s_t: the decoder state, from which the windows are computed",
                query.s.values());
    steps.query("α̂", "(α̂, β̂, κ̂) = W s_t + b: height, sharpness and step of each Gaussian",
                columns(hat, 0, K).values());
    steps.query("β̂", "", columns(hat, K, K).values());
    steps.query("κ̂", "", columns(hat, 2 * K, K).values());
    steps.query("κ_t", "κ_t = κ_{t−1} + exp(κ̂): the centres, which only move forward",
                result.now["kappa"].values());
    explain_windows(hat.values(), result, memory.h.rows(), steps);
  }

 private:
  // Appends the value of each Gaussian at each word, their sum φ, and φ / Σ_j φ.
  void explain_windows(const DoubleRow& hat, const AttentionResult& result, int64_t words,
                       ComputationSteps& steps) const {
    const DoubleRow kappa = result.now["kappa"].values(), phi = result.weights.values();
    std::vector<DoubleRow> each(static_cast<size_t>(words));
    for (size_t j = 0; j < each.size(); ++j)
      for (size_t k = 0; k < kappa.size(); ++k) {
        const double distance = kappa[k] - static_cast<double>(j + 1);
        const double sharpness = std::exp(hat[kappa.size() + k]);
        each[j].push_back(std::exp(hat[k] - sharpness * distance * distance));
      }
    steps.words("φ_tjk", "φ_tjk = exp(α̂_k − exp(β̂_k) (κ_tk − j)²): Gaussian k at word j",
                std::move(each));
    steps.sums("φ_tj", "φ_tj = Σ_k φ_tjk: weights that need not sum to 1", phi, {"φ_tjk"});
    steps.all.back().shown = ComputationStep::Display::share;
    const double sum = std::accumulate(phi.begin(), phi.end(), 0.0);
    DoubleRow shares = phi;
    for (double& share : shares) share /= sum > 0 ? sum : 1;
    steps.column("share",
                 fmt::format("share = φ_tj / Σ_j φ_tj, Σ_j φ_tj = {:.3f}: as maps show it", sum),
                 shares, ComputationStep::Display::share);
  }
};

}  // namespace fovea
