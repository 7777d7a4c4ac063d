#include "ops/packing.h"

#include <gtest/gtest.h>

namespace fovea {
namespace {

TEST(SentenceOffsets, CountsPositionsWithinSentences) {
  const SentenceOffsets p = SentenceOffsets::of(std::vector<int32_t>{0, 2, 2, 5});
  EXPECT_EQ(p.sentences, 3);
  EXPECT_EQ(p.tokens, 5);
  EXPECT_EQ(p.longest, 3);
  EXPECT_EQ(p.positions.values(), (std::vector<double>{0, 1, 0, 1, 2}));
}

}  // namespace
}  // namespace fovea
