#include "nn/layers.h"

#include "nn/positions.h"
#include "support/gradient_check.h"

namespace fovea {
namespace {

using namespace testing;

TEST(Layers, GradientOfAffineAndNorm) {
  ParameterStore store(ElementType::f64);
  const Affine affine(ParameterScope{store, "a"}, 5, 3);
  const LayerNorm norm(ParameterScope{store, "n"}, 3);
  store.allocate(1);
  store.allocate_gradients();
  const Tensor x = random_input({4, 5}, 1);
  std::vector<Tensor> inputs = parameters_of(store);
  inputs.push_back(x);
  expect_gradient(inputs, [&] { return norm(affine(x)); });
}

TEST(Layers, RmsNormHasNoBias) {
  ParameterStore store(ElementType::f64);
  const LayerNorm norm(ParameterScope{store, "n"}, 2, {NormType::rms, 0.25});
  store.allocate(1);
  EXPECT_EQ(store.size(), 2);
  const Tensor x = Tensor::of({1, 2}, std::vector<double>{3, 4}, ElementType::f64);
  const Tensor f = Tensor::of({1, 2}, std::vector<double>{1, 0}, ElementType::f64);
  EXPECT_NEAR(norm(x).values()[0], 3 / std::sqrt(12.75), 1e-15);
  EXPECT_NEAR(norm(x, f, 0).values()[0], 4 / std::sqrt(16.25), 1e-15);
}

TEST(Parameters, ValuesDependOnSeedAndNameAlone) {
  auto initial = [](uint64_t seed, bool extra) {
    ParameterStore store;
    if (extra) store.declare("before", {7}, ParameterInit::normal(1));
    const Tensor t = store.declare("t", {3, 4}, ParameterInit::glorot(4, 3));
    store.allocate(seed);
    return t.values();
  };
  EXPECT_EQ(initial(1, false), initial(1, true));
  EXPECT_NE(initial(1, false), initial(2, false));
  for (const double v : initial(1, false)) EXPECT_LE(std::abs(v), std::sqrt(6.0 / 7));
}

TEST(Parameters, AStackIsTheSameMemory) {
  ParameterStore store;
  const Tensor a = store.declare("a", {2, 3}, ParameterInit::constant(1)),
               b = store.declare("b", {1, 3}, ParameterInit::constant(2)),
               both = store.stack({a, b});
  store.allocate(1);
  store.allocate_gradients();
  EXPECT_EQ(both.values(), (std::vector<double>{1, 1, 1, 1, 1, 1, 2, 2, 2}));
  both.grad().fill(5);
  EXPECT_EQ(b.grad().values(), (std::vector<double>{5, 5, 5}));
  EXPECT_EQ(store.gradients().values(), std::vector<double>(9, 5.0));
}

TEST(Positions, FirstRowsAsPublished) {
  const auto half = sinusoids(SinusoidLayout::half, 2, 4, ElementType::f64).values();
  EXPECT_NEAR(half[4], 0.841471, 1e-6);
  EXPECT_NEAR(half[5], 0.01, 1e-6);
  EXPECT_NEAR(half[6], 0.540302, 1e-6);
  EXPECT_NEAR(half[7], 0.99995, 1e-6);
}

// Computed by hand from the rule of T5 with 32 buckets and 128 distances.
TEST(Positions, BucketsOfT5) {
  const DistanceBuckets both, backward{32, 128, DistanceBuckets::Directions::backward};
  const std::vector<std::pair<int64_t, int64_t>> of_encoder{
      {0, 0},      {-1, 1},   {-7, 7},   {-8, 8},   {-11, 8},  {-12, 9},  {-16, 10},
      {-31, 11},   {-32, 12}, {-63, 13}, {-64, 14}, {-90, 14}, {-91, 15}, {-128, 15},
      {-5000, 15}, {1, 17},   {7, 23},   {8, 24},   {16, 26},  {5000, 31}};
  for (const auto& [distance, bucket] : of_encoder) EXPECT_EQ(both.bucket(distance), bucket);
  const std::vector<std::pair<int64_t, int64_t>> of_decoder{
      {0, 0},    {3, 0},    {-1, 1},   {-15, 15},  {-16, 16},  {-18, 16},
      {-19, 17}, {-32, 21}, {-64, 26}, {-127, 31}, {-5000, 31}};
  for (const auto& [distance, bucket] : of_decoder) EXPECT_EQ(backward.bucket(distance), bucket);
}

TEST(Positions, ScoresOfDistances) {
  ParameterStore store(ElementType::f64);
  const RelativePositions positions(ParameterScope{store, "encoder"}, {}, 2, 1);
  store.allocate(1);
  store.allocate_gradients();
  const auto B = store.find("encoder/bias")->tensor.values();
  const auto scores = positions.for_length(100).values();  // [199, 2]
  for (int64_t d = -99; d <= 99; ++d)
    for (int64_t h = 0; h < 2; ++h)
      EXPECT_EQ(scores[(99 + d) * 2 + h], B[DistanceBuckets{}.bucket(d) * 2 + h]);
  const auto fewer = positions.for_length(3).values();
  EXPECT_EQ(fewer, std::vector<double>(scores.begin() + 97 * 2, scores.begin() + 102 * 2));
  expect_gradient({positions.scores}, [&] { return positions.for_length(4); });
}

}  // namespace
}  // namespace fovea
