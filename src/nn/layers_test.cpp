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

}  // namespace
}  // namespace fovea
