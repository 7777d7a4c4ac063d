#include "cli/did_you_mean.h"

#include <gtest/gtest.h>

namespace fovea {
namespace {

TEST(Suggestion, NamesOfOtherToolkits) {
  EXPECT_EQ(suggested_name("--beam-size", {"--bleu-size", "--beam"}), "--beam");
  EXPECT_EQ(suggested_name("generate", {"translate", "train"}), "translate");
  EXPECT_EQ(suggested_name("info", {"inspect", "train"}), "inspect");
}

TEST(Suggestion, TheFirstMeaningThatTheCommandHas) {
  EXPECT_EQ(suggested_name("--src", {"--input", "--source"}), "--source");
  EXPECT_EQ(suggested_name("--src", {"--input", "--output"}), "--input");
  EXPECT_EQ(suggested_name("--src", {"--set", "--config"}), "--set data.train_source=FILE");
  EXPECT_EQ(suggested_name("--batch-size", {"--batch-tokens", "--set"}), "--batch-tokens");
  EXPECT_EQ(suggested_name("--batch-size", {"--set"}), "--set batch.tokens=N");
}

TEST(Suggestion, SettingsNeedTheOptionSet) {
  EXPECT_EQ(suggested_name("--lr", {"--config", "--set"}), "--set schedule.lr=N");
  EXPECT_EQ(suggested_name("--lr", {"--config"}), "");
}

TEST(Suggestion, UnderscoresAreHyphens) {
  EXPECT_EQ(suggested_name("--beam_size", {"--beam"}), "--beam");
  EXPECT_EQ(suggested_name("--dry_run", {"--dry-run"}), "--dry-run");
}

TEST(Suggestion, OtherwiseTheNearestSpelling) {
  EXPECT_EQ(suggested_name("--bem", {"--beam"}), "--beam");
  EXPECT_EQ(suggested_name("--bem", {"--device", "--beam", "--bleu"}), "--beam");
  EXPECT_EQ(suggested_name("--nothing-like-it", {"--beam"}), "");
  EXPECT_EQ(suggested_name("--beam-size", {}), "");
}

}  // namespace
}  // namespace fovea
