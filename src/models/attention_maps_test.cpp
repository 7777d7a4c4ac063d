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
  RecurrentConfig& own = config.network.emplace<RecurrentConfig>();
  config.encoder_layers = config.decoder_layers = 1;
  config.size = 8;
  config.max_length = 32;
  config.source_words = config.target_words = 20;
  own.attention.kind = mechanism;
  own.attention.window = 2;
  own.attention.gaussians = 3;
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

// The values of a series of the map.
const std::vector<float>& numbers(const AttentionMap& map, std::string_view name) {
  const NamedSeries* series = map.find(name);
  if (!series) throw std::runtime_error("no series " + std::string(name));
  return series->values;
}

TEST(AttentionMaps, HaveTheRowsAndColumnsOfTheirPair) {
  for (const AttentionMechanism& mechanism : attention_mechanisms()) {
    const std::string name = mechanism.about.name;
    if (name == "none") continue;
    const auto maps = maps_of(name);
    ASSERT_EQ(maps.size(), 2u);
    EXPECT_EQ(maps[0].mechanism, name);
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
      const std::vector<float>& position = numbers(map, "p_t");
      ASSERT_EQ(std::ssize(position), map.rows);
      EXPECT_EQ(numbers(map, "window"), std::vector<float>{2});
      EXPECT_EQ(map.find("sigma") != nullptr, map.mechanism == "local-p");
      EXPECT_EQ(map.find("sigma") ? map.find("sigma")->values : std::vector<float>{1},
                std::vector<float>{1});
      for (int64_t i = 0; i < map.rows; ++i)
        for (int64_t j = 0; j < map.cols; ++j) {
          const double middle = std::floor(position[i] + 0.5) - 1;  // from 0
          const bool inside = std::abs(static_cast<double>(j) - middle) <= 2;
          EXPECT_EQ(map.weights[i * map.cols + j] > 0, inside) << mechanism << i << " " << j;
        }
    }
  const AttentionMap monotonic = maps_of("local-m")[1];
  EXPECT_EQ(numbers(monotonic, "p_t"), (std::vector<float>{1, 2, 3, 4, 5, 6}));
}

TEST(AttentionMaps, KappaOnlyMovesForwardAndWeightsAreNormalised) {
  for (const AttentionMap& map : maps_of("window")) {
    const std::vector<float>& kappa = numbers(map, "kappa");
    ASSERT_EQ(std::ssize(kappa), map.rows * 3);
    for (size_t k = 3; k < kappa.size(); ++k) EXPECT_GT(kappa[k], kappa[k - 3]);
    for (auto row = map.weights.begin(); row != map.weights.end(); row += map.cols)
      EXPECT_NEAR(std::accumulate(row, row + map.cols, 0.0), 1, 1e-5);
  }
}

TEST(AttentionMaps, TheChoiceIsTheMostLikelyWord) {
  for (const AttentionMap& map : maps_of("hard-argmax")) {
    const std::vector<float>& all = numbers(map, "soft");
    ASSERT_EQ(all.size(), map.weights.size());
    for (int64_t i = 0; i < map.rows; ++i) {
      const auto soft = all.begin() + i * map.cols, hard = map.weights.begin() + i * map.cols;
      EXPECT_NEAR(std::accumulate(soft, soft + map.cols, 0.0), 1, 1e-5);
      EXPECT_EQ(std::max_element(soft, soft + map.cols) - soft,
                std::max_element(hard, hard + map.cols) - hard);
      EXPECT_EQ(std::accumulate(hard, hard + map.cols, 0.0), 1);
    }
  }
}

TEST(AttentionMaps, TheFrontierStaysOneWordBehindTheFocus) {
  for (const AttentionMap& map : maps_of("forward")) {
    const std::vector<float>& frontier = numbers(map, "frontier");
    ASSERT_EQ(std::ssize(frontier), map.rows);
    EXPECT_EQ(frontier[0], 0);
    for (int64_t i = 1; i < map.rows; ++i) {
      const auto last = map.weights.begin() + (i - 1) * map.cols;
      const int64_t focus = std::max_element(last, last + map.cols) - last;
      EXPECT_EQ(frontier[i], static_cast<float>(std::max<int64_t>(0, focus - 1)));
      for (int64_t j = 0; j < static_cast<int64_t>(frontier[i]); ++j)
        EXPECT_EQ(map.weights[i * map.cols + j], 0);
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
