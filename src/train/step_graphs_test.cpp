#include "train/step_graphs.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <functional>
#include <tuple>

#include "base/random.h"
#include "effort.h"
#include "models/decodable.h"
#include "models/model_config.h"
#include "ops/matmul.h"
#include "support/network_settings.h"
#include "tensor/memory.h"
#include "train/optimizer.h"
#include "train/parameter_selection.h"

// Runs on the device that FOVEA_DEVICE names. On the CPU no graphs are captured, so the tests check
// little.
namespace fovea {
namespace {

Device device() {
  const char* const name = std::getenv("FOVEA_DEVICE");
  return device_named(name ? name : "cpu");
}

ModelConfig transformer() {
  ModelConfig c;
  c.encoder_layers = c.decoder_layers = 2;
  auto& own = transformer_of(c);
  c.size = 32, own.heads = 2, own.inner = 48;
  c.source_words = c.target_words = 40;
  c.dropout = own.attention_dropout = own.activation_dropout = 0.2;
  return c;
}

ModelConfig guided() {
  ModelConfig c = transformer();
  auto& own = transformer_of(c);
  own.norm = NormPlace::pre, own.positions = Positions::learned, c.max_length = 20;
  own.alignment_layer = 1, own.alignment_head = 0;
  return c;
}

ModelConfig recurrent(const std::string& kind, DecoderForm decoder) {
  ModelConfig c;
  RecurrentConfig& own = c.network.emplace<RecurrentConfig>();
  c.encoder_layers = c.decoder_layers = decoder == DecoderForm::luong ? 2 : 1;
  own.decoder = decoder, own.cell = decoder == DecoderForm::luong ? Cell::lstm : Cell::gru;
  c.size = 16, own.encoder_size = 8, own.embedding = 12, own.readout = 20;
  c.tied = TiedEmbeddings::none;
  c.source_words = c.target_words = 40;
  c.max_length = 20;
  c.dropout = 0.2;
  own.attention.kind = kind;
  return c;
}

// Pairs of random words with links. Sentences have up to `most` words. With only_runs() all batches
// are small and have the same sizes, because tools that check each memory access are slow.
PairBatch random_batch(int64_t pairs, uint64_t most, Random& random) {
  PairBatch batch;
  for (int64_t i = 0; i < (only_runs() ? 6 : pairs); ++i) {
    const auto words = [&] {
      std::vector<int32_t> drawn(only_runs() ? 3 : 1 + random.below(most));
      for (int32_t& word : drawn) word = 4 + static_cast<int32_t>(random.below(36));
      return drawn;
    };
    const std::vector<int32_t> source = words(), target = words();
    batch.source.add(source, PackedSentences::Mark::eos_after);
    batch.target_in.add(target, PackedSentences::Mark::bos_before);
    batch.target_out.add(target, PackedSentences::Mark::eos_after);
    const std::vector<Link> links{{static_cast<int32_t>(random.below(source.size())), 0}};
    batch.links.add(links, std::ssize(target) + 1);
  }
  batch.target_tokens = batch.target_out.tokens();
  return batch;
}

// What training changes: all parameters, those outside of the encoder, or an adapter.
enum class TrainedPart { all, decoder, adapter };

// A model, its optimizer and its graphs.
struct Trainee {
  std::unique_ptr<Model> model;
  std::unique_ptr<LowRankAdapter> adapter;
  TrainedWeights weights;
  ParameterStore& store = weights.store();
  Optimizer optimizer{store, {.weight_decay = 0.01, .clip = 1}};
  StepGraphs steps;

  Trainee(const ModelConfig& config, const LossOptions& options,
          TrainedPart trained = TrainedPart::all)
      : model(make_model(config, 1, ElementType::f32, device())), weights(with_gradients(trained)),
        steps(weights, optimizer, options) {
    if (trained == TrainedPart::decoder)
      optimizer.freeze(ranges_of(store, select_parameters(store, {"encoder/*"}, "freeze")));
  }

 private:
  TrainedWeights with_gradients(TrainedPart trained) {
    ParameterStore& all = model->parameters();
    all.allocate_gradients([&](const ParameterStore::Parameter& p) {
      return trained != TrainedPart::decoder || !p.name.starts_with("encoder/");
    });
    if (trained != TrainedPart::adapter) return *model;
    const std::vector<std::string> targets{"encoder/layers/0/attend/W_Q",
                                           "decoder/layers/1/feed_forward/W_2/W"};
    adapter = std::make_unique<LowRankAdapter>(all, targets, AdapterSize{.rank = 3});
    adapter->parameters().allocate(2);
    adapter->parameters().allocate_gradients();
    adapter->keep_base();
    return {*model, *adapter, 0.2};
  }
};

enum class Captures { yes, no };

struct TrainingResult {
  std::vector<double> weights, losses;
  int64_t replays = 0;
};

int64_t updates() { return only_runs() ? 5 : 18; }

// Makes updates with batches of three sizes that repeat, always with other words.
using Halfway = std::function<void(const Model& model, StepGraphs& steps)>;
TrainingResult train(const ModelConfig& config, const LossOptions& options, Captures captures,
                     const Halfway& halfway = nullptr, TrainedPart what = TrainedPart::all) {
  Trainee t(config, options, what);
  if (captures == Captures::no) t.steps.disable_capture();
  Random random(7);
  TrainingResult trained;
  for (int64_t step = 1; step <= updates(); ++step) {
    const PairBatch batch = random_batch(8 + 16 * (step % 3), 9, random);
    const auto [cost, norm] = t.steps.update(batch, {5, step}, step, 1e-3);
    trained.losses.insert(trained.losses.end(), {cost.loss, cost.nll, cost.guided, norm});
    if (step == updates() / 2 && halfway) halfway(*t.model, t.steps);
  }
  trained.weights = t.model->parameters().values().values();
  trained.replays = t.steps.replays();
  return trained;
}

void expect_same_bits(const ModelConfig& config, const LossOptions& options, Precision precision,
                      bool replayed, TrainedPart what = TrainedPart::all) {
  const PrecisionScope scope(precision);
  const TrainingResult with = train(config, options, Captures::yes, nullptr, what);
  EXPECT_EQ(with.replays > 3, replayed && can_capture(device())) << with.replays;
  if (only_runs()) return;
  const TrainingResult again = train(config, options, Captures::yes, nullptr, what),
                       without = train(config, options, Captures::no, nullptr, what);
  EXPECT_EQ(without.replays, 0);
  EXPECT_EQ(with.losses, without.losses);
  EXPECT_EQ(with.weights, without.weights);
  EXPECT_EQ(with.losses, again.losses);
  EXPECT_EQ(with.weights, again.weights);
}

// Whether to skip this precision: if nothing is captured, one precision suffices to find memory
// errors.
bool skips(Precision precision) {
  return only_runs() && precision == Precision::bf16 && !can_capture(device());
}

const auto kPrecisions = ::testing::Values(Precision::f32, Precision::bf16);
const char* name_of(Precision precision) { return precision == Precision::f32 ? "f32" : "bf16"; }

class TransformerStepGraphs : public ::testing::TestWithParam<Precision> {};

TEST_P(TransformerStepGraphs, HaveTheSameBits) {
  if (skips(GetParam())) GTEST_SKIP() << "skipped with FOVEA_ONLY_RUN";
  expect_same_bits(transformer(), {0.1}, GetParam(), true);
}

TEST_P(TransformerStepGraphs, HaveTheSameBitsWithGuidedAttention) {
  if (skips(GetParam())) GTEST_SKIP() << "skipped with FOVEA_ONLY_RUN";
  expect_same_bits(guided(), {.label_smoothing = 0.1, .guided_weight = 0.3}, GetParam(), true);
}

TEST_P(TransformerStepGraphs, HaveTheSameBitsWithFrozenParameters) {
  if (skips(GetParam())) GTEST_SKIP() << "skipped with FOVEA_ONLY_RUN";
  expect_same_bits(transformer(), {0.1}, GetParam(), true, TrainedPart::decoder);
}

TEST_P(TransformerStepGraphs, HaveTheSameBitsWithAnAdapter) {
  if (skips(GetParam())) GTEST_SKIP() << "skipped with FOVEA_ONLY_RUN";
  expect_same_bits(transformer(), {0.1}, GetParam(), true, TrainedPart::adapter);
}

INSTANTIATE_TEST_SUITE_P(, TransformerStepGraphs, kPrecisions,
                         [](const auto& test) { return name_of(test.param); });

class RecurrentStepGraphs
    : public ::testing::TestWithParam<std::tuple<DecoderForm, std::string, Precision>> {};

// The host computes the reward of samples, and static attention reads the ends of sentences on the
// host. So these steps cannot be replayed.
TEST_P(RecurrentStepGraphs, HaveTheSameBits) {
  const auto& [decoder, kind, precision] = GetParam();
  const bool replayed = kind != "hard-sample" && kind != "static";
  const bool redundant = decoder == DecoderForm::bahdanau || (replayed && kind != "global");
  if (skips(precision) || (only_runs() && redundant && !can_capture(device())))
    GTEST_SKIP() << "skipped with FOVEA_ONLY_RUN";
  expect_same_bits(recurrent(kind, decoder), {0.1}, precision, replayed);
}

std::vector<std::string> mechanism_names() {
  std::vector<std::string> names;
  for (const AttentionMechanism& mechanism : attention_mechanisms())
    names.push_back(mechanism.about.name);
  return names;
}

INSTANTIATE_TEST_SUITE_P(
    , RecurrentStepGraphs,
    ::testing::Combine(::testing::Values(DecoderForm::bahdanau, DecoderForm::luong),
                       ::testing::ValuesIn(mechanism_names()), kPrecisions),
    [](const auto& test) {
      std::string name =
          std::get<DecoderForm>(test.param) == DecoderForm::luong ? "luong_" : "bahdanau_";
      for (const char c : std::get<std::string>(test.param)) name += c == '-' ? '_' : c;
      return name + "_" + name_of(std::get<Precision>(test.param));
    });

std::vector<double> scores_of(const Model& model) {
  const std::vector<int32_t> source{5, 6, 7, 2}, offsets{0, 4};
  const Decodable& decoder = *model.as<Decodable>();
  const auto state = decoder.start({source, offsets});
  std::vector<double> all;
  for (const int32_t word : {1, 5, 6, 7, 8}) {
    const std::vector<double> scores = decoder.step(*state, std::vector{word}).values();
    all.insert(all.end(), scores.begin(), scores.end());
  }
  return all;
}

// A search has graphs as well. They must not use memory that has been released.
TEST(StepGraphs, DisablingReleasesMemoryAndKeepsTheBits) {
  const TrainingResult wanted = train(transformer(), {0.1}, Captures::no);
  int64_t replays = 0;
  const TrainingResult found =
      train(transformer(), {0.1}, Captures::yes, [&](const Model& model, StepGraphs& steps) {
        const std::vector<double> before = scores_of(model);
        const size_t reserved = memory_use(device()).reserved;
        replays = steps.replays();
        EXPECT_EQ(steps.disable_graphs(), can_capture(device()));
        EXPECT_FALSE(steps.disable_graphs());
        EXPECT_TRUE(memory_use(device()).reserved < reserved || !can_capture(device()));
        EXPECT_EQ(scores_of(model), before);
      });
  EXPECT_EQ(found.replays, replays) << "no more captures";
  EXPECT_EQ(found.weights, wanted.weights);
  EXPECT_EQ(found.losses, wanted.losses);
}

// One graph makes the same update as add_gradient() and the optimizer.
TEST(StepGraphs, UpdateEqualsThatOfTheOptimizer) {
  const TrainingResult wanted = train(transformer(), {0.1}, Captures::yes);
  Trainee t(transformer(), {0.1});
  Random random(7);
  for (int64_t step = 1; step <= updates(); ++step) {
    t.store.gradients().fill(0);
    const PairBatch batch = random_batch(8 + 16 * (step % 3), 9, random);
    const BatchCost cost = t.steps.add_gradient(batch, {5, step});
    t.optimizer.update({step, 1e-3, 1 / static_cast<double>(cost.words)});
  }
  EXPECT_EQ(t.store.values().values(), wanted.weights);
}

// If the loss is not finite, the weights do not change.
TEST(StepGraphs, DoNotChangeWeightsWithoutAFiniteLoss) {
  Trainee t(transformer(), {0.1});
  Random random(7);
  const PairBatch batch = random_batch(24, 9, random);
  const std::vector<double> before = t.store.values().values();
  std::vector<double> too_large = before;
  for (double& number : too_large) number *= 1e37;
  for (int64_t time = 1; time <= 4; ++time) {  // replayed from the second step on
    t.store.values().assign(time == 4 ? before : too_large);
    parameters_changed();
    const std::vector<double> given = t.store.values().values();
    const auto [cost, norm] = t.steps.update(batch, {5, time}, time, 1e-3);
    EXPECT_EQ(std::isfinite(cost.loss) && std::isfinite(norm), time == 4) << cost.loss;
    EXPECT_EQ(t.store.values().values() == given, time < 4);
  }
}

// The gradient equals that of add_gradient(), except for the effect of padding.
TEST(StepGraphs, GradientEqualsThatOfTheBatch) {
  Trainee t(transformer(), {});
  Random random(7);
  const PairBatch batch = random_batch(24, 9, random);
  const BatchCost wanted = add_gradient(*t.model, batch, {}, {5, 1});
  const std::vector<double> gradient = t.store.gradients().values();
  double norm = 0;
  for (const double g : gradient) norm += g * g;
  for (int time = 0; time < 4; ++time) {
    t.store.gradients().fill(0);
    const BatchCost cost = t.steps.add_gradient(batch, {5, 1});
    EXPECT_NEAR(cost.loss, wanted.loss, 1e-5 * wanted.loss);
    EXPECT_NEAR(cost.nll, wanted.nll, 1e-5 * wanted.nll);
    EXPECT_EQ(cost.words, wanted.words);
    double off = 0;
    const std::vector<double> found = t.store.gradients().values();
    for (size_t i = 0; i < found.size(); ++i) off += std::pow(found[i] - gradient[i], 2);
    EXPECT_LT(off, 1e-9 * norm);
  }
}

}  // namespace
}  // namespace fovea
