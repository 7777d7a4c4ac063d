#include "cli/did_you_mean.h"

#include <gtest/gtest.h>

namespace fovea {
namespace {

TEST(Suggestion, NamesOfOtherToolkits) {
  EXPECT_EQ(suggested_name("--beam-size", {"--bleu-size", "--beam"}), "--beam");
  EXPECT_EQ(suggested_name("--beam_size", {"--beam"}), "--beam");
  EXPECT_EQ(suggested_name("--dry_run", {"--dry-run"}), "--dry-run");
  EXPECT_EQ(suggested_name("--src", {"--input", "--source"}), "--source");
  EXPECT_EQ(suggested_name("--src", {"--input", "--output"}), "--input");
  EXPECT_EQ(suggested_name("--lr", {"--config", "--set"}), "--set schedule.lr=N");
  EXPECT_EQ(suggested_name("--lr", {"--config"}), "");
  EXPECT_EQ(suggested_name("generate", {"translate", "train"}), "translate");
  EXPECT_EQ(suggested_name("--bem", {"--beam"}), "--beam");
}

}  // namespace
}  // namespace fovea
