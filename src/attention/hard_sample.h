#pragma once

#include "attention/attention.h"
#include "ops/elementwise.h"
#include "ops/focus.h"

namespace fovea {

// Xu et al.: Show, Attend and Tell, ICML 2015, section 4.1: one word is drawn from the distribution
// while training (a DropoutScope is alive), and the most likely one taken otherwise. No gradient
// passes through the choice: the scores learn from surrogate_loss().
class HardSampleAttention : public ScoredAttention {
 public:
  using ScoredAttention::ScoredAttention;

  Attended attend(const Query& query, const Memory& memory, const Before& before) const override {
    const Lookup look{memory.sentences, query.sentence};
    const Ranges words = whole(look, score().reach());
    const Tensor soft = softmax_within(scores(query.s, memory, look), words);
    const Dropout key = dropout_key(1);  // on while training; the rate itself plays no part
    const Tensor k = key.on() ? draw(soft, words, key) : highest(soft, words);  // k ~ soft_t
    return at(k, soft, memory, look, before);
  }

  void explain_focus(const Row&, const Before&, const Attended& a, Steps& steps) const override {
    explain_choice(a, steps);
  }

  // What attending to the given word of each row gives. k is i32 [rows].
  static Attended at(const Tensor& k, const Tensor& soft, const Memory& memory, const Lookup& look,
                     const Before& before) {
    const Tensor alpha = one_hot(k, soft);                   // α_tj = [j = k]
    return {.context = weighted_sum(alpha, memory.h, look),  // c_t = h_k
            .weights = alpha,
            .now = {.steps = before.steps + 1},
            .soft = soft,
            .log_choice = log_at(soft, k),
            .entropy = entropy(soft)};
  }
};

// How much the two parts of the surrogate loss weigh, and what a reward is compared with.
struct Reinforce {
  double lambda_r = 1, lambda_e = 0;
  double baseline = 0;
};

// L_s = −(1/B) Σ [λ_r (R − b) log p(choice) + λ_e H], whose gradient is the REINFORCE estimate with
// baseline b and an entropy that is rewarded. The sum is over the rows given, of one step or of
// all: log_choice, entropy and reward (of the row's sentence, a constant) are [rows, 1].
inline Tensor surrogate_loss(const Tensor& log_choice, const Tensor& entropy, const Tensor& reward,
                             const Reinforce& by, int64_t sentences) {
  const Tensor b =
      Tensor::of({1}, std::vector<double>{by.baseline}, reward.type(), reward.device());
  const Tensor advantage = reward + b * -1.0;  // R − b
  const Tensor gain = log_choice * advantage * by.lambda_r + entropy * by.lambda_e;
  return sum(gain) * (-1 / static_cast<double>(sentences));
}

// b' = d b + (1 − d) mean R: after each update.
inline double next_baseline(double baseline, double mean_reward, double decay) {
  return decay * baseline + (1 - decay) * mean_reward;
}

}  // namespace fovea
