#include "cli/bench_models.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "models/model.h"
#include "support/network_settings.h"

namespace fovea {
namespace {

// The elements of all matrices that are multiplied by the states of words. Embeddings only select
// rows; with tied weights one matrix is both.
double matrix_elements(const ModelConfig& config) {
  const auto model = make_model(config, 1);
  double elements = 0;
  for (const auto& p : model->parameters().all()) {
    const bool table = p.name.ends_with("/E") && config.tied == TiedEmbeddings::none;
    if (p.tensor.rank() == 2 && !table) elements += static_cast<double>(p.tensor.elements());
  }
  return elements;
}

// A small model of the same form.
ModelConfig reduced(ModelConfig c) {
  c.source_words = c.target_words = 50;
  c.size = 24;
  transformer_of(c).inner = 40, transformer_of(c).heads = 4;
  return c;
}

TEST(BenchModels, TheWorkOfAWordIsThatOfAllMatrices) {
  for (const char* name : {"tiny", "base"}) {
    const ModelConfig config = reduced(bench_models().at(name).config);
    const WordWork work = work_per_word(config, 0);
    EXPECT_EQ(work.source + work.target, matrix_elements(config)) << name;
  }
}

TEST(BenchModels, AttentionAddsWorkForEachWord) {
  for (const auto& [name, model] : bench_models()) {
    const WordWork none = work_per_word(model.config, 0), some = work_per_word(model.config, 10),
                   more = work_per_word(model.config, 20);
    EXPECT_GT(some.target, none.target) << name;
    EXPECT_DOUBLE_EQ(more.target - some.target, some.target - none.target) << name;
    if (model.config.as<RecurrentConfig>())
      EXPECT_EQ(some.source, none.source) << name << ": the encoder has no attention";
    else
      EXPECT_GT(some.source, none.source) << name;
  }
}

TEST(BenchModels, ShapesAreThoseOfThePapers) {
  ASSERT_EQ(bench_models().size(), 6u);
  const ModelConfig& base = bench_models().at("base").config;
  EXPECT_EQ(base.size, 512);
  EXPECT_EQ(transformer_of(base).inner, 2048);
  EXPECT_EQ(transformer_of(base).heads, 8);
  EXPECT_EQ(base.encoder_layers, 6);
  const ModelConfig& rnnsearch = bench_models().at("rnnsearch").config;
  EXPECT_EQ(recurrent_of(rnnsearch).embedding, 620);
  EXPECT_EQ(rnnsearch.size, 1000);
  EXPECT_TRUE(recurrent_of(rnnsearch).bidirectional);
  EXPECT_EQ(recurrent_of(rnnsearch).attention.score, "additive");
  const ModelConfig& luong = bench_models().at("luong").config;
  EXPECT_EQ(recurrent_of(luong).cell, Cell::lstm);
  EXPECT_EQ(luong.decoder_layers, 2);
  EXPECT_FALSE(recurrent_of(luong).bidirectional);
  EXPECT_EQ(recurrent_of(luong).attention.score, "general");
}

TEST(BenchModels, RandomBatchesHaveTheirSizeAndRepeat) {
  BenchModel model = bench_models().at("tiny");
  model.batch = 50, model.length = 10;
  const auto batches = random_batches(model, 3), again = random_batches(model, 3);
  ASSERT_EQ(batches.size(), 3u);
  EXPECT_NE(batches[0].source.ids, batches[1].source.ids);
  int64_t shortest = 99, longest = 0;
  for (size_t i = 0; i < batches.size(); ++i) {
    const PairBatch& b = batches[i];
    EXPECT_EQ(b.source.ids, again[i].source.ids);
    EXPECT_EQ(b.source.sentences(), 50);
    EXPECT_EQ(b.target_in.ids.size(), b.target_out.ids.size());
    EXPECT_EQ(b.target_tokens, std::ssize(b.target_out.ids));
    EXPECT_EQ(std::ranges::count(b.target_out.ids, kEos), 50);
    EXPECT_EQ(std::ranges::count(b.target_in.ids, kBos), 50);
    EXPECT_LT(std::ranges::max(b.source.ids), model.config.source_words);
    for (int64_t s = 0; s < 50; ++s) {
      const int64_t length = b.source.offsets[s + 1] - b.source.offsets[s];
      shortest = std::min<int64_t>(shortest, length);
      longest = std::max<int64_t>(longest, length);
    }
  }
  EXPECT_EQ(shortest, 7);
  EXPECT_EQ(longest, 10);
}

TEST(BenchModels, LabelsOfKeys) {
  EXPECT_EQ(label_of_key("tokens_per_s"), "tokens per s");
  EXPECT_EQ(label_of_key("peak_memory_bytes"), "peak memory");
  EXPECT_EQ(label_of_key("model"), "model");
}

TEST(BenchModels, ValuesHaveThreeSignificantDigits) {
  EXPECT_EQ(readable_value("model", "tiny"), "tiny");
  EXPECT_EQ(readable_value("parameters", 12345678), "12,345,678");
  EXPECT_EQ(readable_value("tokens_per_s", 12345.6), "12,300");
  EXPECT_EQ(readable_value("tokens_per_s", 99950.0), "100,000");
  EXPECT_EQ(readable_value("gflops", 1.23456), "1.23");
  EXPECT_EQ(readable_value("gflops", 100.4), "100");
  EXPECT_EQ(readable_value("share_of_peak", 0.456), "46 %");
  EXPECT_EQ(readable_value("arena_bytes", int64_t{3} << 20), "3 MiB");
  EXPECT_EQ(readable_value("spread", {10.0, 2000.0}), "10 to 2,000");
}

}  // namespace
}  // namespace fovea
