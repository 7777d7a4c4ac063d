#include "train/train_options.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <optional>

#include "base/files.h"
#include "support/network_settings.h"
#include "temporary.h"
#include "train/batch_prefetch.h"
#include "train/training_data.h"

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
    EXPECT_NO_THROW(options.complete(ExitCode::data)) << entry.path();
    ++count;
  }
  EXPECT_GE(count, 2);
}

TEST(OptionsTest, RefusesContradictorySettings) {
  const auto fails = [](const char* assignment) {
    TrainOptions options;
    Settings settings;
    options.describe(settings);
    settings.set("data.train_source=a");
    settings.set("data.train_target=b");
    settings.set(assignment);
    EXPECT_THROW(options.complete(ExitCode::data), Error) << assignment;
  };
  fails("data.train_source=[]");
  fails("data.valid_source=c");
  fails("data.test_target=c");
  fails("valid.metrics=[ppl, meteor]");
  fails("vocabulary.size=3");
  fails("vocabulary.joint=false");  // contradicts model.tied=all
  fails("model.heads=7");
  TrainOptions endless;
  endless.data.train_source = endless.data.train_target = {"x"};
  endless.train.updates = endless.valid.patience = 0;
  EXPECT_THROW(endless.complete(ExitCode::data), Error);
  TrainOptions falling;
  falling.data.train_source = falling.data.train_target = {"x"};
  falling.schedule = {.kind = ScheduleKind::cosine, .warmup = 500};
  falling.train.updates = 400;
  EXPECT_THROW(falling.complete(ExitCode::data), Error);
}

TrainOptions with(std::initializer_list<const char*> assignments) {
  TrainOptions options;
  Settings settings;
  options.describe(settings);
  settings.set("data.train_source=a");
  settings.set("data.train_target=b");
  for (const char* assignment : assignments) settings.set(assignment);
  options.complete(ExitCode::data);
  return options;
}

TEST(OptionsTest, AlignmentsGuideTheSecondToLastLayer) {
  const TrainOptions plain = with({});
  EXPECT_EQ(plain.train.guided_weight, 0);
  EXPECT_LT(transformer_of(plain.model).alignment_layer, 0);
  const TrainOptions guided = with({"data.alignments=l"});
  EXPECT_EQ(guided.train.guided_weight, 0.1);
  EXPECT_EQ(transformer_of(guided.model).alignment_layer, 4);
  EXPECT_EQ(transformer_of(guided.model).alignment_head, 0);
  const TrainOptions single = with({"data.alignments=l", "model.decoder_layers=1"});
  EXPECT_EQ(transformer_of(single.model).alignment_layer, 0);
  const TrainOptions given =
      with({"data.alignments=l", "train.guided_layer=5", "train.guided_weight=0.5"});
  EXPECT_EQ(transformer_of(given.model).alignment_layer, 5);
  EXPECT_EQ(given.train.loss().guided_weight, 0.5);
  const TrainOptions reads = with({"data.alignments=l", "train.guided_step=reads"});
  EXPECT_EQ(transformer_of(reads.model).alignment_step, AlignmentStep::reads);
  EXPECT_EQ(transformer_of(guided.model).alignment_step, AlignmentStep::writes);
  // The recipe.yml that such a run writes can be read.
  EXPECT_NO_THROW(
      with({"data.alignments=l", "train.guided_layer=4", "model.alignment_layer=4",
            "model.alignment_head=0", "train.guided_step=reads", "model.alignment_step=reads"}));
}

TEST(OptionsTest, RefusesGuidanceThatIsImpossible) {
  const auto says = [](const char* what, std::initializer_list<const char*> assignments) {
    const std::string message = message_of(ExitCode::data, [&] { with(assignments); });
    EXPECT_EQ(message.find(what), 0u) << message;
  };
  says("train.guided_weight needs word links", {"train.guided_weight=0.1"});
  says("train.guided_layer needs word links", {"train.guided_layer=2"});
  says("train.guided_step needs word links", {"train.guided_step=reads"});
  says("train.guided_layer: 6, but", {"data.alignments=l", "train.guided_layer=6"});
  says("data.alignments: only a Transformer can learn them",
       {"data.alignments=l", "model.type=recurrent"});
  says("data.alignments: 2 files", {"data.alignments=[l, m]"});
  says("model.alignment_layer", {"model.alignment_layer=1", "model.alignment_head=0"});
  says("model.alignment_layer", {"data.alignments=l", "model.alignment_layer=1"});
  says("model.alignment_layer", {"data.alignments=l", "model.alignment_step=reads"});
  TrainOptions labels;
  Settings settings;
  labels.describe(settings);
  settings.set("task=classify");
  message_of(ExitCode::usage, [&] { settings.set("data.alignments=l"); });
}

TEST(OptionsTest, DefaultsKeepAllCharactersAndLimitUpdates) {
  const TrainOptions options;
  EXPECT_EQ(options.vocabulary.character_coverage, 1);
  EXPECT_EQ(SentencePieceOptions().character_coverage, 1);
  EXPECT_EQ(options.train.updates, 20'000);
}

TEST(OptionsTest, TheTargetLanguageSelectsTheTokenizerOfBleu) {
  EXPECT_EQ(with({"model.languages=[en, zh]"}).valid.tokenize, BleuTokenizer::zh);
  EXPECT_EQ(with({"model.languages=[en, ja]"}).valid.tokenize, BleuTokenizer::chars);
  EXPECT_EQ(with({"model.languages=[zh, en]"}).valid.tokenize, BleuTokenizer::mteval13);
  EXPECT_EQ(with({"model.languages=[en, zh]", "valid.tokenize=13a"}).valid.tokenize,
            BleuTokenizer::mteval13);
  EXPECT_EQ(with({}).valid.tokenize, BleuTokenizer::automatic) << "the references decide later";
}

// Removes $FOVEA_DATA, which other tests read, and restores it at the end.
class DataFolder : public ::testing::Test {
 protected:
  void SetUp() override {
    const char* const corpora = std::getenv("FOVEA_DATA");
    if (corpora) before_ = corpora;
    unsetenv("FOVEA_DATA");
  }
  void TearDown() override {
    before_ ? setenv("FOVEA_DATA", before_->c_str(), 1) : unsetenv("FOVEA_DATA");
  }
  static std::string root_of(const std::string& root, const std::string& folder,
                             const std::string& recipe = "recipe.yml") {
    DataOptions data;
    data.root = root;
    data.train_source = {"train.en"};
    data.start_at(folder, recipe);
    return data.root;
  }
  std::optional<std::string> before_;
};

TEST_F(DataFolder, GivenWithDataPrecedesTheRootOfTheRecipe) {
  EXPECT_EQ(root_of("", ""), "");
  EXPECT_EQ(root_of("toy", "/data"), "/data/toy");
  EXPECT_EQ(root_of("/old", "/data"), "/data");
  EXPECT_EQ(root_of("", "data"), "data");
  EXPECT_EQ(root_of("data", "data"), "data");  // as in a recipe that a run has written
  EXPECT_EQ(root_of("data/toy", "data"), "data/toy");
  setenv("FOVEA_DATA", "/usual", 1);
  EXPECT_EQ(root_of("toy", "/data"), "/data/toy");
  EXPECT_EQ(root_of("/old", ""), "/old");
}

// If no folder has the text, it is the first one. Errors name this folder.
TEST_F(DataFolder, IsTheFirstOfThreeThatHasTheText) {
  const TemporaryFolder usual, recipes;
  setenv("FOVEA_DATA", usual.path().c_str(), 1);
  const std::string in_usual = usual / "toy";
  EXPECT_EQ(root_of("toy", "", recipes / "toy.yml"), in_usual);
  EXPECT_EQ(root_of("", "", recipes / "toy.yml"), usual.path());
  std::filesystem::create_directories(recipes / "toy");
  write_atomically(recipes / "toy/train.en", "text\n");
  EXPECT_EQ(root_of("toy", "", recipes / "toy.yml"), recipes / "toy");
  std::filesystem::create_directories(usual / "toy");
  write_atomically(usual / "toy/train.en", "text\n");
  EXPECT_EQ(root_of("toy", "", recipes / "toy.yml"), in_usual);
}

TEST(OptionsTest, IdentityHasTheSettingsThatMustNotChange) {
  TrainData data;
  const auto identity = [&](const char* assignment) {
    TrainOptions options;
    Settings settings;
    options.describe(settings);
    if (*assignment) settings.set(assignment);
    return identity_of(options, data);
  };
  const RunIdentity plain = identity("");
  for (const char* hard : {"model.size=64", "model.norm=pre", "batch.tokens=99", "train.seed=3",
                           "train.accumulate=2", "vocabulary.size=99"})
    EXPECT_EQ(difference(plain, identity(hard)).find(std::string(hard, strcspn(hard, "="))), 0u)
        << hard;
  for (const char* soft :
       {"model.dropout=0.5", "train.updates=5", "schedule.lr=1", "train.threads=2", "valid.beam=3",
        "data.root=/elsewhere", "train.guided_weight=0.2"})
    EXPECT_EQ(difference(plain, identity(soft)), "") << soft;
  const std::vector<int32_t> words{4, 5};
  data.train.add(words, words, 1);
  EXPECT_EQ(difference(plain, identity("")), "the training text has changed (0 → 1 pairs)");
}

TEST(StreamTest, GivesTheSameBatchesFromAnyPosition) {
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
