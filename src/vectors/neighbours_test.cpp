#include "vectors/neighbours.h"

#include <gtest/gtest.h>

#include <cmath>

#include "base/random.h"

namespace fovea {
namespace {

TEST(Neighbours, HaveTheLargestCosines) {
  WordVectors v(2);
  v.add("east", std::vector{1.0f, 0.0f});
  v.add("north", std::vector{0.0f, 9.0f});
  v.add("north-east", std::vector{2.0f, 2.0f});
  v.add("far east", std::vector{1e30f, 0.0f});
  v.add("nowhere", std::vector{0.0f, 0.0f});
  v.add("west", std::vector{-3.0f, 0.0f});
  const NeighbourSearch search(v);
  const auto near = search.nearest(v.vector(0), 10, 0);
  ASSERT_EQ(near.size(), 5u);
  EXPECT_EQ(near[0].word, 3);
  EXPECT_NEAR(near[0].cosine, 1, 1e-6);
  EXPECT_EQ(near[1].word, 2);
  EXPECT_NEAR(near[1].cosine, std::sqrt(0.5), 1e-6);
  EXPECT_EQ(near[2].word, 1);  // equal cosines in the order of the file
  EXPECT_EQ(near[3].word, 4);
  EXPECT_NEAR(near[4].cosine, -1, 1e-6);
  EXPECT_EQ(search.nearest(v.vector(0), 2, 0).size(), 2u);
  EXPECT_EQ(search.nearest(v.vector(0), 1)[0].word, 0);
  EXPECT_TRUE(search.nearest(v.vector(0), 0).empty());
}

TEST(Neighbours, AgreeWithCosinesInDouble) {
  WordVectors v(37);
  Random random(2);
  for (int i = 0; i < 50; ++i) {
    std::vector<float> x(37);
    for (float& value : x) value = static_cast<float>(random.normal());
    v.add("w" + std::to_string(i), x);
  }
  const NeighbourSearch search(v);
  const auto near = search.nearest(v.vector(7), 50);
  ASSERT_EQ(near.size(), 50u);
  EXPECT_EQ(near[0].word, 7);
  for (size_t k = 0; k < near.size(); ++k) {
    double ab = 0, aa = 0, bb = 0;
    for (int j = 0; j < 37; ++j) {
      const double a = v.vector(7)[j], b = v.vector(near[k].word)[j];
      ab += a * b, aa += a * a, bb += b * b;
    }
    EXPECT_NEAR(near[k].cosine, ab / std::sqrt(aa * bb), 1e-5);
    EXPECT_LE(near[k].cosine, near[k > 0 ? k - 1 : 0].cosine);
  }
}

TEST(Neighbours, NearestSpellingCountsLettersNotBytes) {
  WordVectors v(1);
  for (const char* word : {"president", "resident", "\u00DCbung", "Haus"})
    v.add(word, std::vector{1.0f});
  EXPECT_EQ(nearest_spelling(v, "presidant"), 0);
  EXPECT_EQ(nearest_spelling(v, "\u00FCbung"), 2);  // one letter, two bytes
  EXPECT_EQ(nearest_spelling(v, "Huas"), 3);
  EXPECT_EQ(nearest_spelling(v, "completely different"), -1);
  EXPECT_EQ(nearest_spelling(v, std::string(10'000, 'x')), -1);
}

}  // namespace
}  // namespace fovea
