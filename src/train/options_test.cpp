#include "train/options.h"

#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>

#include "train/data.h"
#include "train/stream.h"

namespace fovea {
namespace {

TEST(OptionsTest, EveryRecipeCanBeRead) {
  int count = 0;
  for (const auto& entry : std::filesystem::directory_iterator(FOVEA_SOURCE "/recipes")) {
    if (entry.path().extension() != ".yml") continue;
    TrainOptions options;
    Settings settings;
    options.describe(settings);
    EXPECT_NO_THROW(settings.read_file(entry.path().string())) << entry.path();
    EXPECT_NO_THROW(options.complete(Exit::data)) << entry.path();
    ++count;
  }
  EXPECT_GE(count, 2);
}

TEST(OptionsTest, WhatCannotWorkIsRefused) {
  const auto fails = [](const char* assignment) {
    TrainOptions options;
    Settings settings;
    options.describe(settings);
    settings.set("data.train_source=a");
    settings.set("data.train_target=b");
    settings.set(assignment);
    EXPECT_THROW(options.complete(Exit::data), Error) << assignment;
  };
  fails("data.train_source=[]");
  fails("data.valid_source=c");
  fails("data.test_target=c");
  fails("valid.metrics=[ppl, meteor]");
  fails("vocabulary.size=3");
  fails("vocabulary.joint=false");  // with model.tied=all
  fails("model.heads=7");
  TrainOptions endless;
  endless.data.train_source = endless.data.train_target = {"x"};
  endless.train.updates = endless.valid.patience = 0;
  EXPECT_THROW(endless.complete(Exit::data), Error);
  TrainOptions falling;
  falling.data.train_source = falling.data.train_target = {"x"};
  falling.schedule = {.kind = ScheduleKind::cosine, .warmup = 500};
  falling.train.updates = 400;
  EXPECT_THROW(falling.complete(Exit::data), Error);
}

TEST(OptionsTest, DefaultsKeepAllCharactersAndEnd) {
  const TrainOptions options;
  EXPECT_EQ(options.vocabulary.character_coverage, 1);
  EXPECT_EQ(SentencePieceOptions().character_coverage, 1);
  EXPECT_EQ(options.train.updates, 20'000);
}

TEST(OptionsTest, IdentityNamesWhatMustNotChange) {
  TrainData data;
  const auto identity = [&](const char* assignment) {
    TrainOptions options;
    Settings settings;
    options.describe(settings);
    if (*assignment) settings.set(assignment);
    return identity_of(options, data);
  };
  const Identity plain = identity("");
  for (const char* hard : {"model.size=64", "model.norm=pre", "batch.tokens=99", "train.seed=3",
                           "train.accumulate=2", "vocabulary.size=99"})
    EXPECT_EQ(difference(plain, identity(hard)).find(std::string(hard, strcspn(hard, "="))), 0u)
        << hard;
  for (const char* soft : {"model.dropout=0.5", "train.updates=5", "schedule.lr=1",
                           "train.threads=2", "valid.beam=3", "data.root=/elsewhere"})
    EXPECT_EQ(difference(plain, identity(soft)), "") << soft;
  const std::vector<int32_t> words{4, 5};
  data.train.add(words, words, 1);
  EXPECT_EQ(difference(plain, identity("")).find("data.train"), 0u);
}

TEST(StreamTest, GivesTheBatchesOfAllEpochsFromAnywhere) {
  Corpus corpus;
  for (int32_t i = 0; i < 30; ++i) {
    const std::vector<int32_t> words(static_cast<size_t>(1 + i % 5), 4 + i);
    corpus.add(words, words, i + 1);
  }
  const BatchOptions options{.tokens = 12};
  BatchStream whole(corpus, options, 0, 0);
  for (int i = 0; i < 40; ++i) {
    const int64_t epoch = whole.epoch(), at = whole.batch();
    const PairBatch batch = whole.next();
    EXPECT_EQ(batch.lines, BatchPlan(corpus, options, epoch).batch(at).lines);
    BatchStream resumed(corpus, options, epoch, at);
    EXPECT_EQ(batch.source.ids, resumed.next().source.ids);
    EXPECT_EQ(resumed.epoch(), whole.epoch());
    EXPECT_EQ(resumed.batch(), whole.batch());
  }
  EXPECT_GE(whole.epoch(), 2);
}

}  // namespace
}  // namespace fovea
