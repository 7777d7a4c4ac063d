#include "explain/attention_picture.h"

#include <gtest/gtest.h>

namespace fovea {
namespace {

// Source: three words of 1, 2 and 1 pieces; target: two words of 2 and 1 pieces.
const PictureSide kCols{{"a", "bc", "d"}, {0, 1, 1, 2}}, kRows{{"xy", "z"}, {0, 0, 1}};

AttentionMap map_of(const std::string& mechanism) {
  AttentionMap map{"cross", 0, 0, 3, 4, {1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0.5f, 0.5f}};
  map.mechanism = mechanism;
  return map;
}

TEST(AttentionPicture, PlacesBetweenPiecesBecomePlacesBetweenWords) {
  AttentionMap map = map_of("local-p");
  map.position = {1, 2, 4.5f};  // pieces, from 1
  map.window = 1;
  map.sigma = 0.5;
  const AttentionMatrix m = attention_picture(std::vector{map}, kRows, kCols, "t");
  EXPECT_EQ(m.weights, (std::vector<float>{0.5f, 0.5f, 0, 0, 0.5f, 0.5f}));
  // The mean of pieces 0 and 1 is 0.5, where word 1 begins; piece 3.5 is the end of the sentence.
  EXPECT_EQ(m.marks.position, (std::vector<float>{0.5f, 2.5f}));
  ASSERT_EQ(m.marks.window.size(), 2u);
  EXPECT_FLOAT_EQ(m.marks.window[0].low, -0.5f);
  EXPECT_FLOAT_EQ(m.marks.window[0].high, 1.5f);  // pieces 0 … 2
  EXPECT_FLOAT_EQ(m.marks.window[1].low, 1.5f);   // round(3.5) = 4: piece 3 only
  EXPECT_FLOAT_EQ(m.marks.window[1].high, 2.5f);
  // σ to the left is half of word 0, to the right a quarter of word 1.
  EXPECT_FLOAT_EQ(m.marks.deviation[0], (0.5f + 0.25f) / 2);
  EXPECT_NE(m.marks.note.find("local-p"), std::string::npos);
}

TEST(AttentionPicture, KappaBeyondTheEndStaysBeyond) {
  AttentionMap map = map_of("window");
  map.kappa = {1, 2, 1, 2, 4, 7};
  const MatrixAnnotations marks = attention_picture(std::vector{map}, kRows, kCols, "").marks;
  ASSERT_EQ(marks.kappa.size(), 2u);
  EXPECT_EQ(marks.kappa[0], (std::vector<float>{0, 0.75f}));
  EXPECT_EQ(marks.kappa[1], (std::vector<float>{2, 5}));
}

TEST(AttentionPicture, HardAttentionShowsTheDistributionAndTheChoice) {
  AttentionMap map = map_of("hard-argmax");
  map.weights = {1, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1};
  map.soft = {0.6f, 0.4f, 0, 0, 0, 0.4f, 0.6f, 0, 0, 0, 0, 1};
  const AttentionMatrix m = attention_picture(std::vector{map}, kRows, kCols, "");
  EXPECT_EQ(m.marks.chosen, (std::vector<std::vector<size_t>>{{0, 1}, {2}}));
  EXPECT_FLOAT_EQ(m.weights[1], 0.7f);
}

TEST(AttentionPicture, FrontierIsTheLeftEdgeOfWhatIsAllowed) {
  AttentionMap map = map_of("forward");
  map.frontier = {0, 1, 3};
  const MatrixAnnotations marks = attention_picture(std::vector{map}, kRows, kCols, "").marks;
  EXPECT_EQ(marks.frontier, (std::vector<float>{-0.5f, 1.5f}));
  EXPECT_FALSE(marks.bars(0, 0));
  EXPECT_TRUE(marks.bars(1, 1));
}

TEST(AttentionPicture, OnlyOneMapHasMarks) {
  AttentionMap map = map_of("forward");
  map.frontier = {0, 1, 3};
  EXPECT_TRUE(attention_picture(std::vector{map, map}, kRows, kCols, "").marks.frontier.empty());
  EXPECT_EQ(attention_picture(std::vector{map_of("static")}, kRows, kCols, "").marks.rows,
            MatrixAnnotations::Rows::same);
}

}  // namespace
}  // namespace fovea
