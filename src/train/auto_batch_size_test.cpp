#include "train/auto_batch_size.h"

#include <gtest/gtest.h>

#include "base/files.h"
#include "support/network_settings.h"
#include "support/tiny_training.h"
#include "temporary.h"
#include "tensor/memory.h"
#include "tensor/workspace.h"
#include "train/gradient.h"

namespace fovea {
namespace {

constexpr size_t kMebibyte = size_t{1} << 20;

// Limits the memory of the host to the memory in use plus `mebibytes`.
struct MemoryLimit {
  explicit MemoryLimit(size_t mebibytes) {
    release_memory(Cpu{});
    limit_memory(Cpu{}, memory_use().reserved + mebibytes * kMebibyte);
  }
  ~MemoryLimit() { limit_memory(Cpu{}, 0); }
};

TrainOptions small_options() {
  TrainOptions options;
  options.data.train_source = options.data.train_target = {"x"};
  options.model.source_words = options.model.target_words = kWords;
  options.model.encoder_layers = options.model.decoder_layers = 1;
  auto& own = transformer_of(options.model);
  options.model.size = 64, own.heads = 2, own.inner = 1024;
  options.batch.tokens = kAutomaticTokens;
  options.complete(ExitCode::usage);
  return options;
}

class BudgetTest : public ::testing::Test {
 protected:
  void SetUp() override { omp_set_num_threads(1); }

  // Makes updates with batches of `tokens` tokens.
  void update_with(int64_t tokens) const {
    TrainOptions options = small_options();
    options.batch.tokens = tokens;
    const auto model = make_model(options.model, 1);
    model->parameters().allocate_gradients();
    Optimizer optimizer(model->parameters(), options.optimizer);
    const BatchPlan plan(text_, options.batch, 3);
    for (int64_t i = 0; i < std::min<int64_t>(plan.size(), 4); ++i) {
      const BatchCost cost = add_gradient(*model, plan.batch(i), options.train.loss(), {1, i + 1});
      optimizer.update({i + 1, 1e-3, 1 / static_cast<double>(cost.words)});
    }
  }

  Corpus text_ = random_text(6000, 1);
};

TEST_F(BudgetTest, MoreMemoryHoldsMoreTokens) {
  int64_t before = 0;
  for (const size_t mebibytes : {16, 32, 64}) {
    const MemoryLimit limited(mebibytes);
    const int64_t tokens = token_budget(small_options(), text_, Cpu{});
    EXPECT_GT(tokens, before + before / 2);
    EXPECT_EQ(tokens % 64, 0);
    before = tokens;
  }
  EXPECT_LT(before, text_.source_tokens());  // memory limited the search
}

TEST_F(BudgetTest, TheResultFitsAndTwiceTheResultDoesNot) {
  const MemoryLimit limited(32);
  const int64_t tokens = token_budget(small_options(), text_, Cpu{});
  update_with(tokens);
  const std::string why = message_of(ExitCode::memory, [&] { update_with(2 * tokens); });
  EXPECT_NE(why.find("lower the batch size (batch.tokens"), std::string::npos) << why;
}

TEST_F(BudgetTest, TheTextLimitsTheResult) {
  const MemoryLimit limited(256);
  const Corpus little = random_text(50, 1);
  const int64_t all = little.source_tokens() + little.size();
  testing::internal::CaptureStderr();
  const int64_t tokens = token_budget(small_options(), little, Cpu{});
  const std::string log = testing::internal::GetCapturedStderr();
  EXPECT_NE(log.find("batches per epoch: 1; "), std::string::npos) << log;
  EXPECT_GE(tokens, all);
  EXPECT_LT(tokens, all + 64);
}

TEST_F(BudgetTest, TooLittleMemoryIsAnErrorWithARemedy) {
  const MemoryLimit limited(1);
  const std::string why =
      message_of(ExitCode::memory, [&] { token_budget(small_options(), text_, Cpu{}); });
  EXPECT_NE(why.find("raise `workspace`, lower the batch size"), std::string::npos) << why;
}

TEST_F(BudgetTest, TheHostHasNoLimitUnlessOneIsGiven) {
  const std::string why =
      message_of(ExitCode::usage, [&] { token_budget(small_options(), text_, Cpu{}); });
  EXPECT_NE(why.find("`workspace` GiB"), std::string::npos) << why;
}

TEST_F(BudgetTest, AResumedRunKeepsItsBatches) {
  const TemporaryFolder folder;
  const std::string settings = with_batch_tokens("train: {updates: 5}\nbatch: {tokens: auto}", 640);
  EXPECT_NE(settings.find("tokens: 640"), std::string::npos) << settings;
  make_directory(folder / "checkpoints");
  write_atomically(folder / "checkpoints/checkpoint-00000004.safetensors", "");
  write_atomically(folder / "recipe.yml", settings);
  EXPECT_EQ(batch_tokens(small_options(), text_, folder.path(), Cpu{}), 640);
}

}  // namespace
}  // namespace fovea
