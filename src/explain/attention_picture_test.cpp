#include "explain/attention_picture.h"

#include <gtest/gtest.h>

namespace fovea {
namespace {

// Source: three words of 1, 2 and 1 pieces; target: two words of 2 and 1 pieces.
const PictureSide kCols{{"a", "bc", "d"}, {0, 1, 1, 2}}, kRows{{"xy", "z"}, {0, 0, 1}};

using Kind = NamedSeries::Kind;
using Places = std::vector<std::vector<float>>;

AttentionMap map_of(const std::string& mechanism) {
  AttentionMap map{"cross", 0, 0, 3, 4, {1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0.5f, 0.5f}};
  map.mechanism = mechanism;
  return map;
}

TEST(AttentionPicture, PlacesBetweenPiecesBecomePlacesBetweenWords) {
  AttentionMap map = map_of("local-p");
  map.series = {{"p_t", "p_t", Kind::position, {1, 2, 4.5f}},  // pieces, from 1
                {"window", "D", Kind::half_width, {1}},
                {"sigma", "σ", Kind::deviation, {0.5f}}};
  const AttentionMatrix m = attention_picture(std::vector{map}, kRows, kCols, "t");
  EXPECT_EQ(m.weights, (std::vector<float>{0.5f, 0.5f, 0, 0, 0.5f, 0.5f}));
  // The mean of pieces 0 and 1 is 0.5, where word 1 begins; piece 3.5 is the end of the sentence.
  ASSERT_EQ(m.marks.series.size(), 3u);
  EXPECT_EQ(m.marks.series[0].places, (Places{{0.5f}, {2.5f}}));
  const Places& window = m.marks.series[1].places;
  EXPECT_FLOAT_EQ(window[0][0], -0.5f);
  EXPECT_FLOAT_EQ(window[0][1], 1.5f);  // pieces 0 … 2
  EXPECT_FLOAT_EQ(window[1][0], 1.5f);  // round(3.5) = 4: piece 3 only
  EXPECT_FLOAT_EQ(window[1][1], 2.5f);
  // σ to the left is half of word 0, to the right a quarter of word 1.
  EXPECT_EQ(m.marks.series[2].places[0],
            (std::vector<float>{0.5f, (0.5f + 0.25f) / 2, window[0][0], window[0][1]}));
  EXPECT_EQ(m.marks.series[2].label, "p_t");
  EXPECT_NE(m.marks.note.find("local-p"), std::string::npos);
}

TEST(AttentionPicture, KappaBeyondTheEndStaysBeyond) {
  AttentionMap map = map_of("window");
  map.series = {{"kappa", "κ", Kind::centres, {1, 2, 1, 2, 4, 7}}};
  const MatrixAnnotations marks = attention_picture(std::vector{map}, kRows, kCols, "").marks;
  ASSERT_EQ(marks.series.size(), 1u);
  EXPECT_EQ(marks.series[0].places, (Places{{0, 0.75f}, {2, 5}}));
}

TEST(AttentionPicture, HardAttentionShowsTheDistributionAndTheChoice) {
  AttentionMap map = map_of("hard-argmax");
  map.weights = {1, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1};
  map.series = {{"soft", "", Kind::distribution, {0.6f, 0.4f, 0, 0, 0, 0.4f, 0.6f, 0, 0, 0, 0, 1}}};
  const AttentionMatrix m = attention_picture(std::vector{map}, kRows, kCols, "");
  EXPECT_EQ(m.marks.series.at(0).kind, MatrixSeries::Kind::chosen);
  EXPECT_EQ(m.marks.series[0].places, (Places{{0, 1}, {2}}));
  EXPECT_FLOAT_EQ(m.weights[1], 0.7f);
}

TEST(AttentionPicture, FrontierIsTheLeftEdgeOfWhatIsAllowed) {
  AttentionMap map = map_of("forward");
  map.series = {{"frontier", "", Kind::frontier, {0, 1, 3}}};
  const MatrixAnnotations marks = attention_picture(std::vector{map}, kRows, kCols, "").marks;
  EXPECT_EQ(marks.series.at(0).places, (Places{{-0.5f}, {1.5f}}));
  EXPECT_FALSE(marks.bars(0, 0));
  EXPECT_TRUE(marks.bars(1, 1));
}

TEST(AttentionPicture, OnlyOneMapHasMarks) {
  AttentionMap map = map_of("forward");
  map.series = {{"frontier", "", Kind::frontier, {0, 1, 3}}};
  EXPECT_TRUE(attention_picture(std::vector{map, map}, kRows, kCols, "").marks.series.empty());
  EXPECT_EQ(attention_picture(std::vector{map_of("static")}, kRows, kCols, "").marks.rows,
            MatrixAnnotations::Rows::same);
}

}  // namespace
}  // namespace fovea
