#include "cli/train_report.h"

#include <gtest/gtest.h>

#include "cli/model_options.h"

namespace fovea {
namespace {

TEST(UsageOfModel, HasACommandForEachTask) {
  EXPECT_EQ(usage_of_model("toy", TaskKind::translate, "A dog."),
            "fovea translate -m toy \"A dog.\"\nfovea show -m toy \"A dog.\"\n");
  EXPECT_EQ(usage_of_model("toy", TaskKind::classify, "A dog."),
            "fovea classify -m toy --show \"A text.\"\n");
  EXPECT_EQ(usage_of_model("toy", TaskKind::read, "A dog."),
            "fovea classify -m toy --show --question \"A question?\" \"A document.\"\n");
}

TEST(UsageOfModel, QuotesADirectoryWithBlanks) {
  EXPECT_TRUE(usage_of_model("my toy", TaskKind::translate, "A dog.")
                  .starts_with("fovea translate -m 'my toy' \"A dog.\"\n"));
}

CostEstimate cost() {
  return {.parameters = 1234567,
          .batches = 4000,
          .updates = 2000,
          .words = 4321.7,
          .update_seconds = 0.5,
          .words_per_second = 8643.4,
          .memory_bytes = 300.4 * (1 << 20),
          .checkpoint_bytes = 15.25 * (1 << 20)};
}

TEST(EstimateText, HasARowForEachFigure) {
  TrainOptions options;
  options.batch.tokens = 4096;
  options.checkpoint.keep = 3;
  options.train.updates = 7200;
  EXPECT_EQ(estimate_text(cost(), options),
            "parameters          1,234,567\n"
            "batches per epoch   4,000\n"
            "updates per epoch   2,000\n"
            "tokens per batch    4,096\n"
            "words per update    4,321\n"
            "words per second    8,643\n"
            "seconds per update  0.500\n"
            "memory              300 MiB\n"
            "checkpoint          15.2 MiB × 3\n"
            "time                1h00m for 7,200 updates, without validation\n");
  options.train.updates = 0;  // epochs end the training
  EXPECT_EQ(estimate_text(cost(), options).find("time"), std::string::npos);
}

TEST(WaysToShorten, OnlyForALongTraining) {
  TrainOptions options;
  options.train.updates = 7199;
  EXPECT_EQ(ways_to_shorten(cost(), options, Cpu{}), "");
  options.train.updates = 7200;
  options.train.precision = Precision::bf16;
  EXPECT_EQ(ways_to_shorten(cost(), options, Cpu{}),
            "shorter             --device cuda on a machine with a GPU: many times faster\n"
            "shorter             --set train.updates=N with fewer than 7,200, or a smaller "
            "model.size\n");
}

TEST(WaysToShorten, HalfPrecisionIfTheProcessorHasIt) {
  TrainOptions options;
  options.train.updates = 1'000'000;
  options.train.precision = Precision::f32;
  const bool shown =
      ways_to_shorten(cost(), options, Cpu{})
          .starts_with("shorter             --precision bf16: saves a third of the time or more\n");
  EXPECT_EQ(shown, gains_from_bf16(Cpu{}));
}

}  // namespace
}  // namespace fovea
