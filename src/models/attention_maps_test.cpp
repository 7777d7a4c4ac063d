#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "models/explainable.h"
#include "models/model_config.h"

namespace fovea {
namespace {

// The maps of two pairs of different lengths.
std::vector<AttentionMap> maps_of(const std::string& mechanism) {
  ModelConfig config;
  config.type = "recurrent";
  config.encoder_layers = config.decoder_layers = 1;
  config.size = 8;
  config.max_length = 32;
  config.source_words = config.target_words = 20;
  config.attention.kind = mechanism;
  config.attention.window = 2;
  config.attention.gaussians = 3;
  const auto model = make_model(config, 7);
  const std::vector<int32_t> source{5, 6, 7, 2, 8, 9, 10, 11, 12, 13, 14, 15, 2},
      target{1, 5, 6, 1, 7, 8, 9, 10, 11};
  const std::vector<int32_t> source_offsets{0, 4, 13}, target_offsets{0, 3, 9};
  std::vector<AttentionMap> maps;
  for (const auto& pair :
       model->as<Attentive>()->attention({source, source_offsets}, {target, target_offsets}))
    maps.insert(maps.end(), pair.begin(), pair.end());
  return maps;
}

TEST(AttentionMaps, HaveTheRowsAndColumnsOfTheirPair) {
  for (const char* mechanism :
       {"global", "local-m", "local-p", "hard-argmax", "forward", "window", "static"}) {
    const auto maps = maps_of(mechanism);
    ASSERT_EQ(maps.size(), 2u);
    EXPECT_EQ(maps[0].mechanism, mechanism);
    EXPECT_EQ(maps[0].rows, 3);
    EXPECT_EQ(maps[0].cols, 4);
    EXPECT_EQ(maps[1].rows, 6);
    EXPECT_EQ(maps[1].cols, 9);
    EXPECT_EQ(maps[1].weights.size(), 54u);
  }
  EXPECT_TRUE(maps_of("none").empty());
}

TEST(AttentionMaps, WeightsAreZeroOutsideTheWindow) {
  for (const char* mechanism : {"local-m", "local-p"})
    for (const AttentionMap& map : maps_of(mechanism)) {
      ASSERT_EQ(std::ssize(map.position), map.rows);
      EXPECT_EQ(map.window, 2);
      EXPECT_EQ(map.sigma, map.mechanism == "local-p" ? 1 : 0);
      for (int64_t i = 0; i < map.rows; ++i)
        for (int64_t j = 0; j < map.cols; ++j) {
          const double middle = std::floor(map.position[i] + 0.5) - 1;  // from 0
          const bool inside = std::abs(static_cast<double>(j) - middle) <= 2;
          EXPECT_EQ(map.weights[i * map.cols + j] > 0, inside) << mechanism << i << " " << j;
        }
    }
  const AttentionMap monotonic = maps_of("local-m")[1];
  EXPECT_EQ(monotonic.position, (std::vector<float>{1, 2, 3, 4, 5, 6}));
}

TEST(AttentionMaps, KappaOnlyMovesForwardAndWeightsAreNormalised) {
  for (const AttentionMap& map : maps_of("window")) {
    ASSERT_EQ(std::ssize(map.kappa), map.rows * 3);
    for (size_t k = 3; k < map.kappa.size(); ++k) EXPECT_GT(map.kappa[k], map.kappa[k - 3]);
    for (auto row = map.weights.begin(); row != map.weights.end(); row += map.cols)
      EXPECT_NEAR(std::accumulate(row, row + map.cols, 0.0), 1, 1e-5);
  }
}

TEST(AttentionMaps, TheChoiceIsTheMostLikelyWord) {
  for (const AttentionMap& map : maps_of("hard-argmax")) {
    ASSERT_EQ(map.soft.size(), map.weights.size());
    for (int64_t i = 0; i < map.rows; ++i) {
      const auto soft = map.soft.begin() + i * map.cols, hard = map.weights.begin() + i * map.cols;
      EXPECT_NEAR(std::accumulate(soft, soft + map.cols, 0.0), 1, 1e-5);
      EXPECT_EQ(std::max_element(soft, soft + map.cols) - soft,
                std::max_element(hard, hard + map.cols) - hard);
      EXPECT_EQ(std::accumulate(hard, hard + map.cols, 0.0), 1);
    }
  }
}

TEST(AttentionMaps, TheFrontierStaysOneWordBehindTheFocus) {
  for (const AttentionMap& map : maps_of("forward")) {
    ASSERT_EQ(std::ssize(map.frontier), map.rows);
    EXPECT_EQ(map.frontier[0], 0);
    for (int64_t i = 1; i < map.rows; ++i) {
      const auto last = map.weights.begin() + (i - 1) * map.cols;
      const int64_t focus = std::max_element(last, last + map.cols) - last;
      EXPECT_EQ(map.frontier[i], std::max<int64_t>(0, focus - 1));
      for (int64_t j = 0; j < map.frontier[i]; ++j) EXPECT_EQ(map.weights[i * map.cols + j], 0);
    }
  }
}

TEST(AttentionMaps, StaticRowsAreTheSame) {
  const AttentionMap map = maps_of("static")[1];
  for (int64_t k = map.cols; k < std::ssize(map.weights); ++k)
    EXPECT_EQ(map.weights[k], map.weights[k - map.cols]);
}

}  // namespace
}  // namespace fovea
