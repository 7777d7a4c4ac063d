#pragma once

#include "attention/attention.h"
#include "ops/attention_window.h"
#include "ops/elementwise.h"

namespace fovea {

// Stochastic hard attention (Xu et al.: Show, Attend and Tell, ICML 2015, section 4.1). In training
// (while a DropoutScope lives), the mechanism samples one word from the distribution. Otherwise it
// takes the most likely word. No gradient passes through the choice. Instead, the scores learn from
// surrogate_loss().
class HardSampleAttention : public ScoredAttention {
 public:
  using ScoredAttention::ScoredAttention;

  AttentionResult attend(const AttentionQuery& query, const SourceMemory& memory,
                         const AttentionState& previous) const override {
    const RaggedQueries look{memory.sentences, query.sentence};
    const ColumnRanges words = full_range(look, score().reach());
    const Tensor soft = softmax_within(scores(query.s, memory, look), words);
    const Dropout key = dropout_key(1);  // on() is true in training; its rate has no meaning
    const Tensor k = key.on() ? draw(soft, words, key) : argmax(soft, words);  // k ~ soft_t
    return at(k, soft, memory, look, previous);
  }

  std::vector<NamedSeries> series() const override { return choice_series(); }

  void explain_focus(const DoubleRow&, const AttentionState&, const AttentionResult& a,
                     ComputationSteps& steps) const override {
    explain_choice(a, steps);
  }

  // The result of a step in which row i attends to word k[i] of its sentence. k is i32 [rows].
  static AttentionResult at(const Tensor& k, const Tensor& soft, const SourceMemory& memory,
                            const RaggedQueries& look, const AttentionState& previous) {
    const Tensor alpha = one_hot(k, soft);                   // α_tj = [j = k]
    return {.context = weighted_sum(alpha, memory.h, look),  // c_t = h_k
            .weights = alpha,
            .now = {.steps = previous.steps + 1},
            .shown = {{"soft", soft}},
            .log_choice = log_at(soft, k),
            .entropy = entropy(soft)};
  }
};

// λ_r and λ_e, the weights of the two terms of surrogate_loss(), and the baseline b of the reward.
struct ReinforceWeights {
  double lambda_r = 1, lambda_e = 0;
  double baseline = 0;
};

// L_s = −(1/B) Σ [λ_r (R − b) log p(choice) + λ_e H]. R is the reward, H the entropy, and B is
// `sentences`. The gradient of L_s is the REINFORCE estimate with baseline b and an entropy bonus.
// The sum is over the given rows, those of one step or of all steps. log_choice, entropy and reward
// (a constant) are [rows, 1].
inline Tensor surrogate_loss(const Tensor& log_choice, const Tensor& entropy, const Tensor& reward,
                             const ReinforceWeights& weights, int64_t sentences) {
  const Tensor b =
      Tensor::of({1}, std::vector<double>{weights.baseline}, reward.type(), reward.device());
  const Tensor advantage = reward + b * -1.0;  // R − b
  const Tensor gain = log_choice * advantage * weights.lambda_r + entropy * weights.lambda_e;
  return sum(gain) * (-1 / static_cast<double>(sentences));
}

// The baseline after an update: b' = d b + (1 − d) · mean R, with d = `decay`.
inline double next_baseline(double baseline, double mean_reward, double decay) {
  return decay * baseline + (1 - decay) * mean_reward;
}

}  // namespace fovea
