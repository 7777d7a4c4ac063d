#include "train/initial_weights.h"

#include <gtest/gtest.h>

#include <tuple>

#include "decode/model_bundle.h"
#include "support/network_settings.h"
#include "temporary.h"

namespace fovea {
namespace {

Vocabulary words(const std::vector<std::string>& names) {
  std::vector<Vocabulary::Entry> entries;
  for (const std::string& name : names) entries.push_back({name, 1});
  return Vocabulary::from_entries(Segmentation::words, entries);
}

class InitialWeights : public testing::Test {
 protected:
  InitialWeights() {
    TransformerConfig& own = config_.network.emplace<TransformerConfig>();
    config_.encoder_layers = config_.decoder_layers = 1;
    config_.size = own.inner = 8;
    own.heads = 2;
    config_.tied = TiedEmbeddings::none;
    own.output_bias = true;
    old_ = save("old", words({"a", "b", "c"}), words({"x", "y"}), 1);
  }

  // A model directory with random weights.
  std::unique_ptr<Model> save(const std::string& name, const Vocabulary& source,
                              const Vocabulary& target, uint64_t seed) {
    ModelConfig config = config_;
    config.source_words = source.size();
    config.target_words = target.size();
    auto model = make_model(config, seed);
    for (const auto& parameter : model->parameters().all()) {  // biases that are not 0
      std::vector<double> values = parameter.tensor.values();
      for (double& value : values) value += 0.25;
      parameter.tensor.assign(values);
    }
    save_model(folder_ / name, config, model->parameters());
    save_vocabularies(folder_ / name, source, target);
    return model;
  }

  std::unique_ptr<Model> fresh(const TrainData& data) const {
    ModelConfig config = config_;
    config.source_words = data.source.size();
    config.target_words = data.target.size();
    return make_model(config, 2);
  }

  static std::vector<double> row(const Model& model, const std::string& name, int64_t i,
                                 int64_t width) {
    const std::vector<double> values = model.parameters().find(name)->tensor.values();
    return {values.begin() + i * width, values.begin() + (i + 1) * width};
  }

  TemporaryFolder folder_;
  ModelConfig config_;
  std::unique_ptr<Model> old_;
};

TEST_F(InitialWeights, AreTheOldOnesByPiece) {
  TrainData data;
  data.source = words({"c", "new", "a"});
  data.target = words({"y", "x", "z"});
  const auto model = fresh(data), untouched = fresh(data);
  const CopiedWeights copied = copy_weights(folder_ / "old", data, model->parameters());
  EXPECT_EQ(copied.new_pieces, 1 + 3);  // "new"; "z" in target/E, output/W and output/b
  EXPECT_EQ(copied.pieces, (4 + 2) + 3 * (4 + 2));
  const int32_t first = kSpecials;
  for (const auto& [name, to, from] : {std::tuple{"source/E", first, first + 2},
                                       {"source/E", first + 2, first},
                                       {"target/E", first, first + 1},
                                       {"output/W", first + 1, first},
                                       {"source/E", kEos, kEos}})
    EXPECT_EQ(row(*model, name, to, 8), row(*old_, name, from, 8)) << name << to;
  EXPECT_EQ(row(*model, "output/b", first, 1), row(*old_, "output/b", first + 1, 1));
  EXPECT_EQ(row(*model, "source/E", first + 1, 8), row(*untouched, "source/E", first + 1, 8));
  for (const auto& parameter : old_->parameters().all()) {
    if (parameter.name.ends_with("/E") || parameter.name.starts_with("output/")) continue;
    const auto* const found = model->parameters().find(parameter.name);
    EXPECT_EQ(found->tensor.values(), parameter.tensor.values()) << parameter.name;
  }
}

TEST_F(InitialWeights, OfNewPiecesAreTheMeansOfTheirFormerPieces) {
  const Vocabulary letters =
      Vocabulary::from_entries(Segmentation::characters, {{"a", 1}, {"b", 1}, {"c", 1}});
  old_ = save("letters", letters, words({"x"}), 1);
  TrainData data;
  data.source = words({"c", "ab", "a?"});  // "?" is unknown
  data.target = words({"x"});
  const auto model = fresh(data);
  const CopiedWeights copied = copy_weights(folder_ / "letters", data, model->parameters());
  EXPECT_EQ(copied.means, 1);
  EXPECT_EQ(copied.new_pieces, 0);
  const auto a = row(*old_, "source/E", kSpecials, 8), b = row(*old_, "source/E", kSpecials + 1, 8);
  const auto ab = row(*model, "source/E", kSpecials + 1, 8);
  for (size_t j = 0; j < 8; ++j) EXPECT_NEAR(ab[j], (a[j] + b[j]) / 2, 1e-7);
  EXPECT_EQ(row(*model, "source/E", kSpecials + 2, 8), a);
}

TEST_F(InitialWeights, OfAnotherShapeAreRefused) {
  TrainData data;
  data.source = words({"a"});
  data.target = words({"x"});
  auto& own = transformer_of(config_);
  own.inner = 12;
  const std::string error = message_of(
      ExitCode::data, [&] { copy_weights(folder_ / "old", data, fresh(data)->parameters()); });
  EXPECT_NE(error.find("feed_forward"), error.npos) << error;
  EXPECT_NE(error.find("config.yml"), error.npos) << error;
  own.inner = 8;
  config_.encoder_layers = 2;
  message_of(ExitCode::data,
             [&] { copy_weights(folder_ / "old", data, fresh(data)->parameters()); });
}

}  // namespace
}  // namespace fovea
