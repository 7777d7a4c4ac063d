#include "cli/suggestion.h"

#include <gtest/gtest.h>

namespace fovea {
namespace {

TEST(Suggestion, NamesOfOtherToolkits) {
  EXPECT_EQ(meant_name("--beam-size", {"--bleu-size", "--beam"}), "--beam");
  EXPECT_EQ(meant_name("--beam_size", {"--beam"}), "--beam");
  EXPECT_EQ(meant_name("--dry_run", {"--dry-run"}), "--dry-run");
  EXPECT_EQ(meant_name("--src", {"--input", "--source"}), "--source");
  EXPECT_EQ(meant_name("--src", {"--input", "--output"}), "--input");
  EXPECT_EQ(meant_name("--lr", {"--config", "--set"}), "--set schedule.lr=N");
  EXPECT_EQ(meant_name("--lr", {"--config"}), "");
  EXPECT_EQ(meant_name("generate", {"translate", "train"}), "translate");
  EXPECT_EQ(meant_name("--bem", {"--beam"}), "--beam");
}

}  // namespace
}  // namespace fovea
