#include "attention/hard_sample.h"

#include <algorithm>

#include "attention/dot.h"
#include "support/gradient_check.h"

namespace fovea {
namespace {

using namespace testing;

constexpr int64_t kWords = 4, kSize = 3;

// One sentence and one state; rows(n) makes n identical queries.
struct Example {
  HardSampleAttention attention{std::make_unique<DotScore>()};
  SourceMemory memory;
  Tensor state = random_tensor({1, kSize}, 1);

  Example()
      : memory(attention.remember(random_tensor({kWords, kSize}, 2),
                                  SentenceOffsets::of(std::vector<int32_t>{0, kWords}))) {}
  AttentionQuery rows(int64_t count) const {
    std::vector<double> all;
    const auto one = state.values();
    for (int64_t i = 0; i < count; ++i) all.insert(all.end(), one.begin(), one.end());
    Tensor s = Tensor::of({count, kSize}, all, ElementType::f64);
    s.track();
    return {s, Tensor::of(std::vector<int32_t>(static_cast<size_t>(count), 0))};
  }
};

std::vector<double> choices(const AttentionResult& result) {
  std::vector<double> k;
  for (int64_t i = 0; i < result.weights.rows(); ++i) {
    const auto alpha = result.weights.window(i, 1).values();
    k.push_back(static_cast<double>(std::ranges::max_element(alpha) - alpha.begin()));
  }
  return k;
}

TEST(HardSample, SamplesOnlyInTrainingAndReproducibly) {
  const Example x;
  const AttentionQuery query = x.rows(64);
  auto drawn = [&](uint64_t seed, uint32_t step) {
    const DropoutScope training(seed, step);
    auto first = choices(x.attention.attend(query, x.memory, {}));
    const auto second = choices(x.attention.attend(query, x.memory, {}));
    EXPECT_NE(first, second);  // two steps of one sentence
    first.insert(first.end(), second.begin(), second.end());
    return first;
  };
  EXPECT_EQ(drawn(5, 9), drawn(5, 9));
  EXPECT_NE(drawn(5, 9), drawn(6, 9));
  EXPECT_NE(drawn(5, 9), drawn(5, 10));
  const AttentionResult likely = x.attention.attend(query, x.memory, {});
  const auto p = likely.shown["soft"].window(0, 1).values();
  for (const double k : choices(likely))
    EXPECT_EQ(k, static_cast<double>(std::ranges::max_element(p) - p.begin()));
}

TEST(HardSample, GradientOfTheSurrogateLoss) {
  const Example x;
  const AttentionQuery query = x.rows(5);
  const Tensor h = random_input({kWords, kSize}, 3),
               k = Tensor::of(std::vector<int32_t>{0, 3, 1, 1, 2});
  const Tensor reward = random_tensor({5, 1}, 4);
  const SentenceOffsets sentences = SentenceOffsets::of(std::vector<int32_t>{0, kWords});
  expect_gradient({query.s, h}, [&] {
    const SourceMemory memory = x.attention.remember(h, sentences);
    const AttentionResult at = x.attention.attend(query, memory, {});
    const AttentionResult given = HardSampleAttention::at(k, at.shown["soft"], memory,
                                                          {memory.sentences, query.sentence}, {});
    return surrogate_loss(given.log_choice, given.entropy, reward, {0.7, 0.3, 0.2}, 2);
  });
}

// No gradient passes through the choice: only the chosen row of h receives a gradient, and s none.
TEST(HardSample, GradientOfTheContextStopsAtTheChoice) {
  const Example x;
  const AttentionQuery query = x.rows(2);
  const Tensor h = random_input({kWords, kSize}, 3);
  Tape tape;
  const AttentionResult at = x.attention.attend(
      query, x.attention.remember(h, SentenceOffsets::of(std::vector<int32_t>{0, kWords})), {});
  const Tensor seed = random_tensor({2, kSize}, 5);
  tape.backward(at.context, seed);
  EXPECT_FALSE(query.s.slot()->holds());
  const auto k = static_cast<size_t>(choices(at)[0]);
  const auto dh = h.grad().values(), dc = seed.values();
  for (size_t j = 0; j < kWords; ++j)
    for (size_t d = 0; d < kSize; ++d)
      EXPECT_NEAR(dh[j * kSize + d], j == k ? dc[d] + dc[kSize + d] : 0, 1e-15);
}

// Each word has a reward. The exact gradient of −E[R] − λ_e H is that of −Σ_j p_j R_j − λ_e H(p).
// The mean of the estimator must agree within its standard error, for any baseline.
TEST(HardSample, EstimatorMatchesTheExactGradient) {
  const Example x;
  const std::vector<double> R = {1.0, -0.5, 2.0, 0.3};
  constexpr double lambda_e = 0.4;
  constexpr int64_t rows = 1000;
  constexpr uint32_t draws = 60;

  const AttentionQuery one = x.rows(1);
  {
    Tape tape;
    const AttentionResult at = x.attention.attend(one, x.memory, {});
    const Tensor rewards = Tensor::of({1, kWords}, R, ElementType::f64);
    tape.backward(sum(at.shown["soft"] * rewards) * -1.0 + sum(at.entropy) * -lambda_e);
  }
  const auto exact = one.s.grad().values();

  for (const double baseline : {0.0, 0.8}) {
    std::vector<double> mean(kSize, 0), square(kSize, 0);
    for (uint32_t step = 0; step < draws; ++step) {
      const AttentionQuery many = x.rows(rows);
      const DropoutScope training(11, step);
      Tape tape;
      const AttentionResult at = x.attention.attend(many, x.memory, {});
      std::vector<double> rewards;
      for (const double k : choices(at)) rewards.push_back(R[static_cast<size_t>(k)]);
      tape.backward(surrogate_loss(at.log_choice, at.entropy,
                                   Tensor::of({rows, 1}, rewards, ElementType::f64),
                                   {1, lambda_e, baseline}, 1));
      const auto found = many.s.grad().values();
      for (size_t i = 0; i < found.size(); ++i) {
        mean[i % kSize] += found[i];
        square[i % kSize] += found[i] * found[i];
      }
    }
    const double n = static_cast<double>(rows) * draws;
    for (size_t d = 0; d < kSize; ++d) {
      mean[d] /= n;
      const double error = std::sqrt((square[d] / n - mean[d] * mean[d]) / n);
      EXPECT_LT(error, 0.02);
      EXPECT_NEAR(mean[d], exact[d], 4 * error) << "standard error " << error;
    }
  }
}

TEST(HardSample, BaselineMovesTowardsTheMeanReward) {
  EXPECT_DOUBLE_EQ(next_baseline(2, 12, 0.9), 3);
  EXPECT_DOUBLE_EQ(next_baseline(2, 12, 0), 12);
}

}  // namespace
}  // namespace fovea
