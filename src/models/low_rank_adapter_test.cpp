#include "models/low_rank_adapter.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>

#include "base/files.h"
#include "base/random.h"
#include "models/adapter_directory.h"
#include "models/model_directory.h"
#include "ops/matmul.h"
#include "support/gradient_check.h"
#include "support/network_settings.h"
#include "temporary.h"

namespace fovea {
namespace {

constexpr double kBound = 1e-6;

ModelConfig small_transformer() {
  ModelConfig c;
  c.encoder_layers = c.decoder_layers = 1;
  c.size = 8, transformer_of(c).heads = 2, transformer_of(c).inner = 12;
  c.source_words = c.target_words = 9;
  return c;
}

ModelConfig small_recurrent() {
  ModelConfig c;
  c.network.emplace<RecurrentConfig>();
  c.encoder_layers = c.decoder_layers = 1;
  c.size = 6, c.tied = TiedEmbeddings::none;
  c.source_words = c.target_words = 9;
  return c;
}

const std::vector<std::string> kOfTransformer{
    "encoder/layers/0/attend/W_Q", "encoder/layers/0/attend/W_V",
    "decoder/layers/0/attend_source/W_K", "decoder/layers/0/feed_forward/W_1/W"};
const std::vector<std::string> kOfRecurrent{"decoder/0/U", "decoder/attend/U_a", "source/E"};

// A model in double with an adapter whose B is not zero.
struct AdaptedModel {
  std::unique_ptr<Model> model;
  LowRankAdapter adapter;

  AdaptedModel(const ModelConfig& config, const std::vector<std::string>& targets)
      : model(make_model(config, 3, ElementType::f64)),
        adapter(model->parameters(), targets, {.rank = 2, .alpha = 3}) {
    model->parameters().allocate_gradients(
        [&](const auto& p) { return std::ranges::find(targets, p.name) != targets.end(); });
    adapter.parameters().allocate(5);
    adapter.parameters().allocate_gradients();
    Random random(8);
    std::vector<double> values = adapter.parameters().values().values();
    for (double& value : values) value += 0.2 * random.normal();
    adapter.parameters().values().assign(values);
    adapter.keep_base();
  }

  BatchLoss loss() const {
    static const std::vector<int32_t> source{5, 6, 7, 2, 8, 4, 2}, offsets{0, 4, 7},
        in{1, 4, 5, 6, 1, 7}, out{4, 5, 6, 2, 7, 2}, in_offsets{0, 4, 6};
    return model->loss({{source, offsets}, {in, in_offsets}, out}, 0.1);
  }

  // The loss with other values of A and B.
  double loss_at(const std::vector<double>& values, const Dropout& dropout) const {
    adapter.parameters().values().assign(values);
    adapter.merge(dropout);
    return loss().loss.values().at(0);
  }
};

// The largest error of the gradient, relative to its largest number.
double gradient_error(AdaptedModel& m, const Dropout& dropout) {
  constexpr double kStep = 1e-4;
  m.model->parameters().gradients().fill(0);
  m.adapter.parameters().gradients().fill(0);
  m.adapter.merge(dropout);
  {
    Tape tape;
    tape.backward(m.loss().loss);
  }
  m.adapter.add_gradients(dropout);
  const std::vector<double> found = m.adapter.parameters().gradients().values();
  std::vector<double> values = m.adapter.parameters().values().values();
  double worst = 0, largest = 0;
  for (size_t i = 0; i < values.size(); ++i) {
    const double middle = values[i];
    const auto at = [&](double shift) {
      values[i] = middle + shift;
      return m.loss_at(values, dropout);
    };
    const double numeric =
        (8 * (at(kStep) - at(-kStep)) - (at(2 * kStep) - at(-2 * kStep))) / (12 * kStep);
    values[i] = middle;
    worst = std::max(worst, std::abs(found[i] - numeric));
    largest = std::max(largest, std::abs(numeric));
  }
  m.loss_at(values, {});
  return worst / largest;
}

TEST(LowRankAdapter, HasTheGradientOfTheLoss) {
  const Dropout dropout{.rate = 0.3F, .seed = 4, .step = 2, .op = 1};
  AdaptedModel transformer(small_transformer(), kOfTransformer);
  EXPECT_LT(gradient_error(transformer, {}), kBound);
  EXPECT_LT(gradient_error(transformer, dropout), kBound);
  AdaptedModel recurrent(small_recurrent(), kOfRecurrent);
  EXPECT_LT(gradient_error(recurrent, {}), kBound);
}

TEST(LowRankAdapter, MergesTheScaledProduct) {
  const ModelConfig config = small_transformer();
  const auto untouched = make_model(config, 3, ElementType::f64);
  AdaptedModel m(config, kOfTransformer);
  for (int time = 0; time < 2; ++time) m.adapter.merge();  // again: the same result
  const ParameterStore& store = m.model->parameters();
  for (const auto& p : store.all()) {
    std::vector<double> wanted = untouched->parameters().find(p.name)->tensor.values();
    if (std::ranges::find(kOfTransformer, p.name) != kOfTransformer.end()) {
      const auto a = m.adapter.parameters().find(p.name + "/A")->tensor.values();
      const auto b = m.adapter.parameters().find(p.name + "/B")->tensor.values();
      const size_t in = static_cast<size_t>(p.tensor.size(1));
      for (size_t i = 0; i < wanted.size(); ++i)
        for (size_t k = 0; k < 2; ++k) wanted[i] += 1.5 * b[i / in * 2 + k] * a[k * in + i % in];
    }
    const std::vector<double> found = p.tensor.values();
    for (size_t i = 0; i < wanted.size(); ++i) EXPECT_NEAR(found[i], wanted[i], 1e-12) << p.name;
  }
}

TEST(LowRankAdapter, ChangesNothingAtFirstAndHasFewParameters) {
  const auto model = make_model(small_transformer(), 3);
  const std::vector<double> before = model->parameters().values().values();
  LowRankAdapter adapter(model->parameters(), kOfTransformer, {.rank = 4});
  EXPECT_EQ(adapter.parameters().size(), 4 * (3 * (8 + 8) + (12 + 8)));
  adapter.parameters().allocate(1);
  adapter.keep_base();
  adapter.merge();
  EXPECT_EQ(model->parameters().values().values(), before);
}

class AdapterDirectory : public ::testing::Test {
 protected:
  AdapterDirectory() : m_(small_transformer(), kOfTransformer) {
    const auto base = make_model(small_transformer(), 3);
    save_model(folder_ / "base", small_transformer(), base->parameters());
    LowRankAdapter adapter(base->parameters(), kOfTransformer, {.rank = 2, .alpha = 3});
    adapter.parameters().allocate(5);
    adapter.parameters().values().assign(m_.adapter.parameters().values().values());
    std::filesystem::create_directories(folder_ / "adapter");
    save_adapter(folder_ / "adapter", adapter_of(folder_ / "base", {2, 3}), adapter);
    m_.adapter.merge();
  }

  // Merges into the model of `base` and returns the weights.
  std::vector<double> merged(const std::string& base) const {
    const LoadedModel loaded = load_model(folder_ / base);
    merge_adapter(folder_ / "adapter", folder_ / base, loaded.model->parameters());
    return loaded.model->parameters().values().values();
  }
  std::string refusal(const std::string& base = "base") const {
    return message_of(ExitCode::model, [&] { merged(base); });
  }

  TemporaryFolder folder_;
  AdaptedModel m_;
};

TEST_F(AdapterDirectory, HoldsTheAdapter) {
  const std::vector<double> found = merged("base");
  const std::vector<double> wanted = m_.model->parameters().values().values();
  ASSERT_EQ(found.size(), wanted.size());
  for (size_t i = 0; i < found.size(); ++i) EXPECT_NEAR(found[i], wanted[i], 1e-5);
}

TEST_F(AdapterDirectory, BelongsToOneModel) {
  const auto other = make_model(small_transformer(), 4);
  save_model(folder_ / "other", small_transformer(), other->parameters());
  const std::string said = refusal("other");
  EXPECT_NE(said.find("adapter.fingerprint"), said.npos) << said;
  EXPECT_NE(said.find(folder_ / "base"), said.npos) << said;
}

TEST_F(AdapterDirectory, IsCheckedBeforeItIsUsed) {
  const std::string config = folder_ / "adapter/config.yml";
  const std::string text = read_file(config);
  const std::string model = message_of(ExitCode::model, [&] { load_model(folder_ / "adapter"); });
  EXPECT_NE(model.find("`adapter`"), model.npos) << model;
  std::string other = text;
  other.replace(other.find("rank: 2"), 7, "rank: 9");
  write_atomically(config, other);
  EXPECT_NE(refusal().find("rank 9"), std::string::npos) << refusal();
  write_atomically(config, text);
  EXPECT_FALSE(merged("base").empty());
  const std::string weights = read_file(folder_ / "adapter/adapter.safetensors");
  std::string damaged = weights;
  damaged.back() = static_cast<char>(damaged.back() ^ 1);
  write_atomically(folder_ / "adapter/adapter.safetensors", damaged);
  EXPECT_NE(refusal().find("checksum"), std::string::npos) << refusal();
  std::filesystem::remove(folder_ / "adapter/adapter.safetensors");
  EXPECT_NE(refusal().find("train.lora.rank"), std::string::npos) << refusal();
}

}  // namespace
}  // namespace fovea
