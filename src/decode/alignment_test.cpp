#include "decode/alignment.h"

#include <gtest/gtest.h>

namespace fovea {
namespace {

TEST(Alignment, SumsSourcePiecesAndAveragesTargetPieces) {
  // two pieces of one target word and </s>; source pieces of words 0, 1, 1 and </s>
  const SoftAlignment pieces{3, 4, {.1f, .2f, .3f, .4f, .5f, .2f, .1f, .2f, 0, 0, 0, 1}};
  const std::vector<int> target{0, 0, 1}, source{0, 1, 1, 2};
  const SoftAlignment words = by_word(pieces, target, source);
  ASSERT_EQ(words.rows, 2);
  ASSERT_EQ(words.cols, 3);
  const std::vector<float> expected{.3f, .4f, .3f, 0, 0, 1};
  for (size_t i = 0; i < expected.size(); ++i) EXPECT_NEAR(words.weights[i], expected[i], 1e-6);
  EXPECT_EQ(pharaoh(hard_alignment(words)), "1-0");
}

TEST(Alignment, MeanIsOfOneKind) {
  const std::vector<AttentionMap> maps{{"encoder", 0, 0, 1, 1, {9}},
                                       {"cross", 0, 0, 1, 2, {1, 0}},
                                       {"cross", 0, 1, 1, 2, {0.5, 0.5}}};
  EXPECT_EQ(mean_attention(maps, "cross").weights, (std::vector<float>{0.75f, 0.25f}));
}

TEST(Alignment, EndSymbolsTakeNoPart) {
  const SoftAlignment words{3, 3, {.1f, .2f, .7f, .4f, .3f, .3f, 0, 0, 1}};
  EXPECT_EQ(pharaoh(hard_alignment(words)), "1-0 0-1");
  EXPECT_EQ(pharaoh(hard_alignment({1, 1, {1}})), "");
}

}  // namespace
}  // namespace fovea
