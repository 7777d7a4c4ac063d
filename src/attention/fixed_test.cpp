#include "attention/fixed.h"

#include <gtest/gtest.h>

#include <cmath>

#include "support/gradient_check.h"

namespace fovea {
namespace {

using namespace testing;

constexpr int64_t kSize = 4;
const std::vector<int32_t> kOffsets = {0, 4, 5, 10};  // sentences of 4, 1 and 5 words

struct Example {
  ParameterStore store{ElementType::f64};
  FixedContext fixed;
  Tensor h;
  SourceMemory memory;

  explicit Example(SummaryStates what) : fixed({store, ""}, kSize, what) {
    store.allocate(1);
    h = random_input({10, kSize}, 2);
    memory = fixed.remember(h, SentenceOffsets::of(kOffsets));
  }

  // tanh(V u), u = h_j of a sentence, or [→h_j ; ←h_1].
  std::vector<double> summary(size_t sentence, int32_t j) const {
    const std::vector<double> all = h.values(), v = fixed.V.values();
    const size_t first = static_cast<size_t>(kOffsets[sentence]) * kSize;
    std::vector<double> c;
    for (size_t i = 0; i < kSize; ++i) {
      double sum = 0;
      for (size_t k = 0; k < kSize; ++k) {
        const bool back = fixed.what == SummaryStates::both_ends && k >= kSize / 2;
        sum += v[i * kSize + k] * all[first + (back ? 0 : static_cast<size_t>(j) * kSize) + k];
      }
      c.push_back(std::tanh(sum));
    }
    return c;
  }
};

void expect_near(const std::vector<double>& found, const std::vector<double>& want) {
  ASSERT_EQ(found.size(), want.size());
  for (size_t i = 0; i < want.size(); ++i) EXPECT_NEAR(found[i], want[i], 1e-14);
}

TEST(FixedContext, IsTheSummaryOfTheSentenceAtEveryStep) {
  for (const SummaryStates what : {SummaryStates::both_ends, SummaryStates::last_word}) {
    const Example x(what);
    const std::vector<int32_t> sentences{2, 0, 1, 2};
    AttentionState previous = x.fixed.start(x.memory, Tensor::of(sentences));
    for (uint64_t t = 0; t < 3; ++t) {
      const AttentionQuery query{random_tensor({4, kSize}, 3 + t), Tensor::of(sentences)};
      const AttentionResult step = x.fixed.attend(query, x.memory, previous);
      for (size_t i = 0; i < sentences.size(); ++i) {
        const auto b = static_cast<size_t>(sentences[i]);
        const int32_t words = kOffsets[b + 1] - kOffsets[b];
        const auto row = static_cast<int64_t>(i);
        expect_near(step.context.window(row, 1).values(), x.summary(b, words - 1));
        std::vector<double> last(5, 0);
        last[static_cast<size_t>(words - 1)] = 1;
        EXPECT_EQ(step.weights.window(row, 1).values(), last);
        EXPECT_EQ(step.shown["forward_end"].values()[i], words);
        EXPECT_EQ(step.shown["backward_end"].values()[i], 1);
      }
      EXPECT_EQ(step.now.steps, static_cast<int64_t>(t) + 1);
      previous = step.now;
    }
  }
}

// An intervention that puts the weight on word j gives the summary of the words 1 to j.
TEST(FixedContext, OtherWeightsGiveTheSummaryOfFewerWords) {
  for (const SummaryStates what : {SummaryStates::both_ends, SummaryStates::last_word}) {
    const Example x(what);
    const Tensor sentence = Tensor::of(std::vector<int32_t>{2});
    for (int32_t j = 0; j < 5; ++j) {
      std::vector<double> weights(5, 0);
      weights[static_cast<size_t>(j)] = 1;
      const Tensor alpha = Tensor::of({1, 5}, weights, ElementType::f64);
      expect_near(x.fixed.context(alpha, x.memory, {x.memory.sentences, sentence}).values(),
                  x.summary(2, j));
    }
  }
}

TEST(FixedContext, GradientOfBothSummaries) {
  for (const SummaryStates what : {SummaryStates::both_ends, SummaryStates::last_word}) {
    Example x(what);
    x.store.allocate_gradients();
    std::vector<Tensor> inputs = parameters_of(x.store);
    inputs.push_back(x.h);
    const Tensor sentence = Tensor::of(std::vector<int32_t>{1, 2, 0, 2});
    expect_gradient(inputs, [&] { return x.fixed.start(x.memory, sentence)["context"]; });
  }
}

// A reading that goes only forward has one end.
TEST(FixedContext, ShowsTheEndsOfTheReadings) {
  EXPECT_EQ(Example(SummaryStates::both_ends).fixed.series().size(), 2u);
  EXPECT_EQ(Example(SummaryStates::last_word).fixed.series().size(), 1u);
}

}  // namespace
}  // namespace fovea
