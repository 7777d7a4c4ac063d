#include "attention/attention.h"

#include <algorithm>

#include "attention/attentive_reader.h"
#include "attention/hard_argmax.h"
#include "attention/registry.h"
#include "ops/recurrent.h"
#include "ops/shape.h"
#include "support/gradient_check.h"

namespace fovea {
namespace {

using namespace testing;

constexpr int64_t kSize = 4;  // of states and annotations

// The rows of one step: for each row its parent row in the previous step, and its sentence.
struct Step {
  std::vector<int32_t> parents, sentences;
};
using Plan = std::vector<Step>;

// Sentences of 4, 1 and 5 words. Training: sentences end. Search: hypotheses are selected and
// repeated.
const std::vector<int32_t> kRagged = {0, 4, 5, 10};
const Plan kTraining = {{{}, {1, 2, 0}}, {{0, 1}, {1, 2}}, {{0, 1}, {1, 2}}};
const Plan kSearch = {{{}, {1, 2}}, {{0, 1, 1}, {1, 2, 2}}, {{0, 2, 1, 1}, {1, 2, 2, 2}}};
const Plan kAlone = {{{}, {0}}, {{0}, {0}}, {{0}, {0}}};

// An attention with its parameters, the annotations and the states of every step.
struct Example {
  ParameterStore store;
  std::unique_ptr<Attention> attention;
  SentenceOffsets sentences;
  Plan plan;
  Tensor h;
  std::vector<Tensor> s;

  Example(const AttentionConfig& config, const std::vector<int32_t>& offsets, const Plan& plan,
          ElementType type = ElementType::f64)
      : store(type), sentences(SentenceOffsets::of(offsets)), plan(plan) {
    attention = make_attention(ParameterScope{store, ""}, config, {kSize, kSize, 6});
    store.allocate(1);
    store.allocate_gradients();
    h = random_tensor({sentences.tokens, kSize}, 2, type);
    h.track();
    for (size_t t = 0; t < plan.size(); ++t) {
      const auto rows = static_cast<int64_t>(plan[t].sentences.size());
      s.push_back(random_tensor({rows, kSize}, 3 + t, type));
      s.back().track();
    }
  }

  std::vector<AttentionResult> run() const {
    const SourceMemory memory = attention->remember(h, sentences);
    std::vector<AttentionResult> steps;
    AttentionState previous;
    for (size_t t = 0; t < plan.size(); ++t) {
      if (t) previous = chosen_rows(previous, Tensor::of(plan[t].parents));
      steps.push_back(attention->attend({s[t], Tensor::of(plan[t].sentences)}, memory, previous));
      previous = steps.back().now;
    }
    return steps;
  }
  Tensor contexts() const {
    std::vector<Tensor> c;
    for (const AttentionResult& step : run()) c.push_back(step.context);
    return concat_rows(c);
  }
  std::vector<Tensor> inputs() const {
    std::vector<Tensor> all = parameters_of(store);
    all.push_back(h);
    all.insert(all.end(), s.begin(), s.end());
    return all;
  }
};

AttentionConfig config_of(const std::string& kind, const std::string& score) {
  AttentionConfig config;
  config.kind = kind;
  config.score = score;
  config.inner = 3;
  config.window = 1;
  config.gaussians = 2;
  return config;
}

// Every mechanism with every score, or with none if it uses none.
std::vector<AttentionConfig> all_configs() {
  std::vector<AttentionConfig> all;
  for (const AttentionMechanism& mechanism : attention_mechanisms()) {
    const std::string kind = mechanism.about.name;
    if (kind == "none") continue;
    if (mechanism.scoring == AttentionMechanism::ScoreUse::none)
      all.push_back(config_of(kind, "auto"));
    else
      for (const AttentionInfo& score : attention_scores())
        all.push_back(config_of(kind, score.name));
  }
  return all;
}

// Hard attention has no gradient that finite differences can check: it has tests of its own.
bool is_hard(const AttentionConfig& config) { return config.kind.starts_with("hard"); }

TEST(Attention, GradientOfEveryMechanismAndScore) {
  for (const AttentionConfig& config : all_configs()) {
    if (is_hard(config)) continue;
    SCOPED_TRACE(config.kind + " " + config.score);
    const Example ragged(config, kRagged, kTraining), search(config, kRagged, kSearch);
    const Example alone(config, {0, 3}, kAlone), one_word(config, {0, 1}, kAlone);
    expect_gradient(ragged.inputs(), [&] { return ragged.contexts(); });
    expect_gradient(alone.inputs(), [&] { return alone.contexts(); });
    // Repeated rows, and a word that has all the weight regardless of its score: the mutants of
    // expect_gradient() have no effect there, so only the error is checked.
    EXPECT_LE(GradientCheck(search.inputs(), [&] { return search.contexts(); }).error(), 1e-6);
    EXPECT_LE(GradientCheck(one_word.inputs(), [&] { return one_word.contexts(); }).error(), 1e-6);
  }
}

TEST(Attention, GradientOfAShortLocationTable) {
  AttentionConfig config = config_of("global", "location");
  config.location_length = 2;
  const Example x(config, kRagged, kTraining);
  expect_gradient(x.inputs(), [&] { return x.contexts(); });
}

TEST(Attention, GradientOfAOneDirectionalSummary) {
  const SentenceOffsets sentences = SentenceOffsets::of(kRagged);
  ParameterStore store(ElementType::f64);
  const auto attention = make_attention(ParameterScope{store, ""}, config_of("static", "general"),
                                        {kSize, kSize, 6, SummaryStates::last_word});
  store.allocate(1);
  store.allocate_gradients();
  const Tensor h = random_input({10, kSize}, 1), rows = Tensor::of(std::vector<int32_t>{2, 0, 0});
  EXPECT_EQ(attention->remember(h, sentences).summary.values(),
            rows_at(h, Tensor::of(std::vector<int32_t>{3, 4, 9})).values());
  std::vector<Tensor> inputs = parameters_of(store);
  inputs.push_back(h);
  expect_gradient(inputs, [&] {
    return attention->attend({{}, rows}, attention->remember(h, sentences), {}).context;
  });
}

// The straight-through gradient is the gradient of hard + soft − stop(soft), where `hard` and
// stop(soft) are constants. Finite differences exist for that function.
TEST(Attention, GradientOfHardArgmaxIsStraightThrough) {
  for (const AttentionInfo& score : attention_scores()) {
    SCOPED_TRACE(score.name);
    const Example x(config_of("hard-argmax", score.name), kRagged, {kTraining[0]});
    const auto& mechanism = dynamic_cast<const ScoredAttention&>(*x.attention);
    const RaggedQueries look{x.sentences, Tensor::of(kTraining[0].sentences)};
    const AttentionResult result = x.run()[0];
    const Tensor fixed =
        result.weights.view(result.weights.shape()) +
        result.shown["soft"].view(result.weights.shape()) * -1.0;  // hard − stop(soft)
    auto surrogate = [&] {
      const SourceMemory memory = mechanism.remember(x.h, x.sentences);
      const Tensor soft = softmax_within(mechanism.score()(x.s[0], memory, look), full_range(look));
      return weighted_sum(fixed + soft, memory.h, look);
    };
    expect_gradient(x.inputs(), surrogate);
    auto gradients_of = [&](const std::function<Tensor()>& f) {
      x.store.gradients().fill(0);
      for (const Tensor& input : {x.h, x.s[0]}) input.slot()->release();
      Tape tape;
      tape.backward(f(), random_tensor({3, kSize}, 8));
      std::vector<double> all;
      for (const Tensor& input : x.inputs()) {
        if (!input.slot()->holds()) continue;
        const auto values = input.grad().values();
        all.insert(all.end(), values.begin(), values.end());
      }
      return all;
    };
    const auto found = gradients_of([&] { return x.contexts(); }),
               expected = gradients_of(surrogate);
    ASSERT_EQ(found.size(), expected.size());
    for (size_t i = 0; i < found.size(); ++i) EXPECT_NEAR(found[i], expected[i], 1e-12);
  }
}

TEST(Attention, GradientOfTheReader) {
  for (const auto& offsets : {kRagged, std::vector<int32_t>{0, 3}}) {
    ParameterStore store(ElementType::f64);
    const ReaderAttention read(ParameterScope{store, ""}, {kSize, 3, 5, 2});
    store.allocate(1);
    store.allocate_gradients();
    const SentenceOffsets documents = SentenceOffsets::of(offsets);
    const Tensor h = random_input({documents.tokens, kSize}, 1),
                 u = random_input({documents.sentences, 3}, 2);
    std::vector<Tensor> inputs = parameters_of(store);
    inputs.insert(inputs.end(), {h, u});
    expect_gradient(inputs, [&] { return read(h, documents, u).g; });
  }
}

// The weights of row i: first those of the sentence's words, then zeros.
std::vector<double> row_of(const Tensor& weights, int64_t i) {
  return weights.window(i, 1).values();
}

TEST(Attention, WeightsSumToOneAndNoneFallsOutside) {
  for (const ElementType type : {ElementType::f32, ElementType::f64})
    for (const AttentionConfig& config : all_configs()) {
      if (config.kind == "window") continue;  // φ need not sum to 1
      SCOPED_TRACE(config.kind + " " + config.score);
      const Example x(config, kRagged, kTraining, type);
      const auto steps = x.run();
      for (size_t t = 0; t < steps.size(); ++t)
        for (size_t i = 0; i < x.plan[t].sentences.size(); ++i) {
          const auto b = static_cast<size_t>(x.plan[t].sentences[i]);
          const auto words = static_cast<size_t>(kRagged[b + 1] - kRagged[b]);
          const auto alpha = row_of(steps[t].weights, static_cast<int64_t>(i));
          ASSERT_EQ(alpha.size(), 5u);
          double sum = 0;
          for (size_t j = 0; j < alpha.size(); ++j) {
            sum += alpha[j];
            EXPECT_GE(alpha[j], 0);
            if (j >= words) {
              EXPECT_EQ(alpha[j], 0);
            }
          }
          if (config.kind == "local-p")
            EXPECT_LE(sum, 1 + 1e-6);
          else
            EXPECT_NEAR(sum, 1, 1e-6);
          if (is_hard(config)) {
            EXPECT_EQ(std::ranges::count(alpha, 1.0), 1);
          }
        }
    }
}

TEST(Attention, LocalWindowsAreExactlyZeroOutside) {
  for (const char* kind : {"local-m", "local-p"}) {
    const Example x(config_of(kind, "general"), kRagged, kTraining);
    const auto steps = x.run();
    for (size_t t = 0; t < steps.size(); ++t)
      for (size_t i = 0; i < x.plan[t].sentences.size(); ++i) {
        const double p = std::floor(steps[t].shown["p_t"].values()[i] + 0.5);
        const auto alpha = row_of(steps[t].weights, static_cast<int64_t>(i));
        for (size_t j = 0; j < alpha.size(); ++j)
          if (std::abs(static_cast<double>(j + 1) - p) > 1) {
            EXPECT_EQ(alpha[j], 0);
          }
        if (std::string(kind) == "local-m") {
          const auto b = static_cast<size_t>(x.plan[t].sentences[i]);
          EXPECT_EQ(p, std::min<double>(static_cast<double>(t + 1), kRagged[b + 1] - kRagged[b]));
        }
      }
  }
}

TEST(Attention, ForwardTakesNoWordTwiceAndEndsAtTheLast) {
  AttentionConfig config = config_of("forward", "general");
  config.slack = 0;
  Plan plan = {{{}, {0}}};
  for (int t = 1; t < 12; ++t) plan.push_back({{0}, {0}});
  const Example x(config, {0, 4}, plan);
  const auto steps = x.run();
  size_t focus = 0;
  for (const AttentionResult& step : steps) {
    const auto alpha = step.weights.values();
    for (size_t j = 0; j < focus; ++j) EXPECT_EQ(alpha[j], 0);
    focus = static_cast<size_t>(std::ranges::max_element(alpha) - alpha.begin());
  }
  EXPECT_EQ(steps.back().weights.values(), (std::vector<double>{0, 0, 0, 1}));
}

// The result of a row depends only on its own sentence.
TEST(Attention, BatchEqualsSingleSentences) {
  for (const AttentionConfig& config : all_configs()) {
    SCOPED_TRACE(config.kind + " " + config.score);
    const Example x(config, kRagged, {kTraining[0], {{0, 1, 2}, {1, 2, 0}}});
    const auto together = x.run();
    for (int64_t i = 0; i < 3; ++i) {
      const auto b = static_cast<size_t>(x.plan[0].sentences[static_cast<size_t>(i)]);
      const int32_t first = kRagged[b], words = kRagged[b + 1] - first;
      Example alone(config, {0, words}, {kAlone[0], kAlone[1]});
      alone.h = x.h.window(first, words);
      for (size_t t = 0; t < 2; ++t) alone.s[t] = x.s[t].window(i, 1);
      const auto steps = alone.run();
      for (size_t t = 0; t < 2; ++t) {
        const auto found = row_of(together[t].context, i), expected = steps[t].context.values();
        for (size_t d = 0; d < expected.size(); ++d) EXPECT_NEAR(found[d], expected[d], 1e-12);
      }
    }
  }
}

// Every series of rows has one row of numbers per query, under its name.
TEST(Attention, ShowsTheSeriesOfEveryMechanism) {
  for (const AttentionConfig& config : all_configs()) {
    SCOPED_TRACE(config.kind + " " + config.score);
    const Example x(config, kRagged, kTraining);
    const auto steps = x.run();
    for (const NamedSeries& series : x.attention->series()) {
      SCOPED_TRACE(series.name);
      EXPECT_EQ(series.values.size(), series.of_rows() ? 0u : 1u);
      for (const AttentionResult& step : steps) {
        const Tensor shown = step.shown[series.name];
        ASSERT_EQ(bool(shown), series.of_rows());
        if (!shown) continue;
        EXPECT_EQ(shown.size(0), step.weights.rows());
        if (series.kind == NamedSeries::Kind::distribution) {
          EXPECT_EQ(shown.cols(), step.weights.cols());
        }
      }
    }
  }
}

TEST(Attention, SelectsRowsOfTheState) {
  const Tensor kappa = random_tensor({3, 2}, 1);
  const AttentionState state{.steps = 4, .tensors = {{"kappa", kappa}}};
  const AttentionState first = first_rows(state, 2);
  EXPECT_EQ(first.steps, 4);
  EXPECT_EQ(first["kappa"].values(), kappa.window(0, 2).values());
  EXPECT_FALSE(first["weights"]);
  const AttentionState chosen = chosen_rows(state, Tensor::of(std::vector<int32_t>{2, 2, 0, 1}));
  EXPECT_EQ(chosen["kappa"].window(1, 1).values(), kappa.window(2, 1).values());
  EXPECT_EQ(chosen["kappa"].rows(), 4);
}

}  // namespace
}  // namespace fovea
