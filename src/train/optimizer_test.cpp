#include "train/optimizer.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "train/schedule.h"

namespace fovea {
namespace {

void expect_near(const std::vector<double>& found, const std::vector<double>& wanted, double tol) {
  ASSERT_EQ(found.size(), wanted.size());
  for (size_t i = 0; i < found.size(); ++i)
    EXPECT_NEAR(found[i], wanted[i], tol * std::max(1.0, std::abs(wanted[i]))) << "entry " << i;
}

// tests/goldens compares the updates with those of another program.
TEST(OptimizerTest, ScalesGradientSumsBeforeClipping) {
  std::vector<std::vector<double>> ends;
  for (const double words : {1.0, 8.0}) {
    ParameterStore store(ElementType::f32);
    store.declare("a", {50}, ParameterInit::normal(1));
    store.allocate(1);
    store.allocate_gradients();
    Optimizer optimizer(store, {.clip = 1.5});
    for (int64_t step = 1; step <= 5; ++step) {
      std::vector<double> gradient(50);
      for (size_t i = 0; i < gradient.size(); ++i)
        gradient[i] = words * static_cast<double>(static_cast<int64_t>(i) - 20 * step) / 64;
      store.gradients().assign(gradient);
      optimizer.update({step, 0.1, 1 / words});
    }
    ends.push_back(store.values().values());
  }
  EXPECT_EQ(ends[0], ends[1]);
}

TEST(ScheduleTest, LinearAndCosineReachTheFloor) {
  ScheduleOptions s{
      .kind = ScheduleKind::linear, .lr = 1, .warmup = 10, .total = 110, .floor = 0.1};
  EXPECT_DOUBLE_EQ(learning_rate(s, 5, 1), 0.5);
  EXPECT_DOUBLE_EQ(learning_rate(s, 10, 1), 1);
  EXPECT_DOUBLE_EQ(learning_rate(s, 60, 1), 0.55);
  EXPECT_DOUBLE_EQ(learning_rate(s, 110, 1), 0.1);
  EXPECT_DOUBLE_EQ(learning_rate(s, 999, 1), 0.1);
  s.kind = ScheduleKind::cosine;
  EXPECT_DOUBLE_EQ(learning_rate(s, 10, 1), 1);
  EXPECT_NEAR(learning_rate(s, 60, 1), 0.55, 1e-12);
  EXPECT_NEAR(learning_rate(s, 110, 1), 0.1, 1e-12);
  s.kind = ScheduleKind::constant;
  EXPECT_DOUBLE_EQ(learning_rate(s, 110, 1), 1);
  s.warmup = 0;
  for (const ScheduleKind kind : {ScheduleKind::constant, ScheduleKind::inverse_sqrt,
                                  ScheduleKind::noam, ScheduleKind::linear, ScheduleKind::cosine}) {
    s.kind = kind;
    EXPECT_TRUE(std::isfinite(learning_rate(s, 1, 4)));
  }
}

TEST(OptimizerTest, MovingAverageFollowsTheWeights) {
  ParameterStore store(ElementType::f64);
  const Tensor a = store.declare("a", {2}, ParameterInit::constant(1));
  store.allocate(1);
  store.allocate_gradients();
  Optimizer optimizer(store, {.ema = 0.9});
  store.gradients().assign(std::vector<double>{1, -1});
  optimizer.update({1, 0.5});  // the first step of Adam is lr · sign(g)
  expect_near(a.values(), {0.5, 1.5}, 1e-8);
  const double first = 2.0 / 11;  // (1 + t) / (10 + t)
  expect_near(optimizer.ema().values(), {first + (1 - first) * 0.5, first + (1 - first) * 1.5},
              1e-8);
  {
    const BorrowedValues borrowed(store, optimizer.ema());
    expect_near(a.values(), optimizer.ema().values(), 0);
  }
  expect_near(a.values(), {0.5, 1.5}, 1e-8);
}

TEST(OptimizerTest, MovingAverageForgetsTheFirstWeightsAndKeepsItsDecay) {
  ParameterStore store(ElementType::f64);
  const Tensor a = store.declare("a", {1}, ParameterInit::constant(1000));
  store.allocate(1);
  store.allocate_gradients();
  Optimizer optimizer(store, {.ema = 0.9999});
  a.assign(std::vector<double>{0});
  store.gradients().assign(std::vector<double>{0});
  for (int64_t step = 1; step <= 300; ++step) optimizer.update({step, 0});
  EXPECT_LT(optimizer.ema().values()[0], 1e-6);
  optimizer.ema().assign(std::vector<double>{1});
  optimizer.update({1'000'000, 0});
  EXPECT_DOUBLE_EQ(optimizer.ema().values()[0], 0.9999);
}

// Gradients are 0, so only weight decay changes values.
TEST(OptimizerTest, WeightDecayAppliesToMatricesOnly) {
  for (const ElementType type : {ElementType::f32, ElementType::f64}) {
    ParameterStore store(type);
    const Tensor gain = store.declare("norm/g", {5}, ParameterInit::constant(1)),
                 matrix = store.declare("W", {3, 7}, ParameterInit::constant(1)),
                 bias = store.declare("b", {3}, ParameterInit::constant(1)),
                 embeddings = store.declare("E", {2, 2}, ParameterInit::constant(1));
    store.allocate(1);
    store.allocate_gradients();
    Optimizer(store, {.weight_decay = 0.5}).update({1, 0.5});
    for (const Tensor& t : {gain, bias})
      EXPECT_EQ(t.values(), std::vector<double>(t.elements(), 1));
    for (const Tensor& t : {matrix, embeddings})
      EXPECT_EQ(t.values(), std::vector<double>(t.elements(), 0.75));
  }
}

TEST(OptimizerTest, FrozenNumbersStayBitForBit) {
  ParameterStore store(ElementType::f32);
  store.declare("a", {8, 5}, ParameterInit::normal(1));  // a matrix: vectors have no weight decay
  store.allocate(1);
  store.allocate_gradients();
  Optimizer optimizer(store, {.weight_decay = 0.1, .clip = 1, .ema = 0.9});
  const std::vector<double> first = store.values().values();
  optimizer.freeze({{3, 2}, {39, 1}});
  for (int64_t step = 1; step <= 20; ++step) {
    store.gradients().assign(std::vector<double>(40, 0.5));
    EXPECT_NEAR(optimizer.update({step, 0.01}), 0.5 * std::sqrt(37.0), 1e-6);
  }
  const std::vector<double> last = store.values().values(), ema = optimizer.ema().values(),
                            m = optimizer.m().values(), v = optimizer.v().values();
  for (size_t i = 0; i < 40; ++i) {
    const bool frozen = i == 3 || i == 4 || i == 39;
    EXPECT_EQ(last[i] == first[i], frozen) << i;
    EXPECT_EQ(ema[i] == first[i], frozen) << i;
    EXPECT_EQ(m[i] == 0 && v[i] == 0, frozen) << i;
  }
}

// A gradient that is not finite shows in its norm; a loss that is not finite is checked directly.
TEST(OptimizerTest, NothingChangesIfLossOrGradientAreNotFinite) {
  ParameterStore store(ElementType::f32);
  store.declare("a", {2, 2}, ParameterInit::normal(1));
  store.allocate(1);
  store.allocate_gradients();
  Optimizer optimizer(store, {.weight_decay = 0.1, .clip = 1, .ema = 0.9});
  const auto all = [&] {
    std::vector<double> numbers;
    for (const Tensor& t : {store.values(), optimizer.m(), optimizer.v(), optimizer.ema()})
      for (const double number : t.values()) numbers.push_back(number);
    return numbers;
  };
  const std::vector<double> first = all();
  const double none = std::nan(""), infinite = HUGE_VAL;
  for (const double bad : {none, infinite, -infinite}) {
    store.gradients().assign(std::vector<double>{1, bad, 2, 3});
    EXPECT_FALSE(std::isfinite(optimizer.update({1, 0.1})));
    EXPECT_EQ(all(), first);
  }
  const Tensor norm({1}, ElementType::f32);
  store.gradients().assign(std::vector<double>{1, 1, 1, 1});
  for (const double loss : {none, infinite, 2.5}) {
    optimizer.update(optimizer.note({1, 0.1}), Tensor::of({1}, std::vector{loss}, ElementType::f32),
                     norm);
    EXPECT_EQ(norm.values()[0], 2);
    EXPECT_EQ(all() == first, !std::isfinite(loss));
  }
}

TEST(OptimizerTest, NamesTheFirstParameterThatIsNotFinite) {
  ParameterStore store(ElementType::f32);
  store.declare("a", {5000}, ParameterInit::constant(0));
  const Tensor b = store.declare("b", {5000}, ParameterInit::constant(0));
  store.declare("c", {3}, ParameterInit::constant(0));
  store.allocate(1);
  store.allocate_gradients();
  EXPECT_EQ(first_not_finite(store, store.values()), nullptr);
  std::vector<double> values(5000, 0);
  values[4999] = std::numeric_limits<double>::infinity();
  b.assign(values);
  EXPECT_EQ(first_not_finite(store, store.values())->name, "b");
  values[0] = std::numeric_limits<double>::quiet_NaN();
  b.assign(values);
  EXPECT_EQ(first_not_finite(store, store.values())->name, "b");
}

}  // namespace
}  // namespace fovea
