#include "train/cost_estimate.h"

#include <gtest/gtest.h>

#include "support/tiny_training.h"

namespace fovea {
namespace {

// Compares the output of --dry-run with the training.
TEST_F(TrainerTest, TheEstimateAgreesWithTheTraining) {
  text_ = random_text(40, 1);
  for (const double ema : {0.0, 0.9})
    for (const int64_t accumulate : {1, 3}) {
      options_.optimizer.ema = ema;
      options_.train = {.updates = 0, .epochs = 1, .accumulate = accumulate, .log_every = 1000};
      Bigrams model(1);
      const CostEstimate e = estimate(model, text_, options_);
      const BatchPlan plan(text_, options_.batch, 0);
      ASSERT_EQ(plan.size(), 5);  // estimate() measures five batches
      EXPECT_EQ(e.parameters, kWords * kWords + 3);
      EXPECT_EQ(e.batches, plan.size());

      const std::string name = std::to_string(ema) + std::to_string(accumulate);
      train(name);
      EXPECT_EQ(state_.update, e.updates);
      const auto batches = static_cast<double>(state_.drawn);
      const auto each = static_cast<double>(accumulate);
      if (accumulate == 1) {  // otherwise the last update takes batches of the next epoch
        EXPECT_EQ(state_.drawn, e.batches);
        EXPECT_DOUBLE_EQ(e.words, static_cast<double>(state_.words) / batches);
      }
      EXPECT_NEAR(e.words, each * static_cast<double>(text_.target_tokens() + text_.size()) / 5,
                  1e-6);
      EXPECT_NEAR(e.words / e.update_seconds, e.words_per_second, 1e-6 * e.words_per_second);
      EXPECT_GT(e.memory_bytes, static_cast<double>(3 * 4 * e.parameters));
      const auto numbers = static_cast<double>(e.parameters * (ema > 0 ? 4 : 3));
      EXPECT_EQ(e.checkpoint_bytes, 4 * numbers);
      const auto file = static_cast<double>(fs::file_size(checkpoints(name).path(state_.update)));
      EXPECT_GT(file, e.checkpoint_bytes);
      EXPECT_LT(file, e.checkpoint_bytes + 4096);  // names and state
    }
}

}  // namespace
}  // namespace fovea
