#include "train/optimizer.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "base/safetensors.h"
#include "train/schedule.h"

namespace fovea {
namespace {

// One reference case: docs in tests/golden/mechanisms.
class Golden {
 public:
  explicit Golden(const std::string& name)
      : file_(SafetensorsFile::open(FOVEA_SOURCE "/tests/golden/mechanisms/" + name +
                                    ".safetensors")) {}

  std::vector<double> numbers(const std::string& name) const {
    const TensorInfo& info = file_.get(name);
    std::vector<double> values(static_cast<size_t>(info.elements()));
    const std::byte* from = file_.data(info).data();
    for (size_t i = 0; i < values.size(); ++i) {
      int64_t whole;
      std::memcpy(info.dtype == StoredType::I64 ? static_cast<void*>(&whole) : &values[i],
                  from + 8 * i, 8);
      if (info.dtype == StoredType::I64) values[i] = static_cast<double>(whole);
    }
    return values;
  }
  double number(const std::string& name) const { return numbers(name).at(0); }

 private:
  SafetensorsFile file_;
};

std::vector<double> slice(const std::vector<double>& all, size_t part, size_t size) {
  return {all.begin() + static_cast<std::ptrdiff_t>(part * size),
          all.begin() + static_cast<std::ptrdiff_t>((part + 1) * size)};
}

void expect_near(const std::vector<double>& found, const std::vector<double>& wanted, double tol) {
  ASSERT_EQ(found.size(), wanted.size());
  for (size_t i = 0; i < found.size(); ++i)
    EXPECT_NEAR(found[i], wanted[i], tol * std::max(1.0, std::abs(wanted[i]))) << "entry " << i;
}

void check_optimizer(const std::string& name, Type type, double tol) {
  const Golden golden(name);
  ParameterStore store(type);
  const Tensor a = store.declare("a", {3, 6}, Init::constant(0));
  const Tensor b = store.declare("b", {7}, Init::constant(0));
  store.allocate(1);
  store.allocate_gradients();
  a.assign(golden.numbers("param.a"));
  b.assign(golden.numbers("param.b"));
  Optimizer optimizer(store, {.beta1 = golden.number("in.beta1"),
                              .beta2 = golden.number("in.beta2"),
                              .eps = golden.number("in.eps"),
                              .weight_decay = golden.number("in.weight_decay"),
                              .clip = golden.number("in.max_norm")});
  const auto grads_a = golden.numbers("in.grads_a"), grads_b = golden.numbers("in.grads_b");
  for (size_t k = 0; k < 5; ++k) {
    std::vector<double> gradient = slice(grads_a, k, 18);
    const std::vector<double> rest = slice(grads_b, k, 7);
    gradient.insert(gradient.end(), rest.begin(), rest.end());
    for (double& g : gradient) g *= 8;  // as if summed over 8 words
    store.gradients().assign(gradient);
    const double norm = optimizer.gradient_norm();
    EXPECT_NEAR(norm / 8, golden.numbers("out.norm")[k], tol);
    optimizer.update(static_cast<int64_t>(k) + 1, golden.numbers("in.lr")[k], norm, 1.0 / 8);
    expect_near(a.values(), slice(golden.numbers("out.a"), k, 18), tol);
    expect_near(b.values(), slice(golden.numbers("out.b"), k, 7), tol);
  }
}

TEST(OptimizerTest, AdamGolden) {
  check_optimizer("optim_adam", Type::f64, 1e-9);
  check_optimizer("optim_adam", Type::f32, 2e-5);
}

TEST(OptimizerTest, AdamWGolden) {
  check_optimizer("optim_adamw", Type::f64, 1e-9);
  check_optimizer("optim_adamw", Type::f32, 2e-5);
}

TEST(ScheduleTest, InverseSqrtGolden) {
  const Golden golden("schedule_inverse_sqrt");
  const ScheduleOptions schedule{.kind = ScheduleKind::inverse_sqrt,
                                 .lr = golden.number("in.base_lr"),
                                 .warmup = static_cast<int64_t>(golden.number("in.warmup"))};
  std::vector<double> rates;
  for (const double t : golden.numbers("in.steps"))
    rates.push_back(learning_rate(schedule, static_cast<int64_t>(t), 1));
  expect_near(rates, golden.numbers("out.main"), 1e-12);
}

TEST(ScheduleTest, NoamGolden) {
  const Golden golden("schedule_noam");
  const ScheduleOptions schedule{.kind = ScheduleKind::noam,
                                 .lr = golden.number("in.factor"),
                                 .warmup = static_cast<int64_t>(golden.number("in.warmup"))};
  const int64_t d = static_cast<int64_t>(golden.number("in.d_model"));
  std::vector<double> rates;
  for (const double t : golden.numbers("in.steps"))
    rates.push_back(learning_rate(schedule, static_cast<int64_t>(t), d));
  expect_near(rates, golden.numbers("out.main"), 1e-12);
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
  ParameterStore store(Type::f64);
  const Tensor a = store.declare("a", {2}, Init::constant(1));
  store.allocate(1);
  store.allocate_gradients();
  Optimizer optimizer(store, {.ema = 0.9});
  store.gradients().assign(std::vector<double>{1, -1});
  const double norm = optimizer.gradient_norm();
  optimizer.update(1, 0.5, norm, 1);  // the first step of Adam is lr · sign(g)
  expect_near(a.values(), {0.5, 1.5}, 1e-8);
  expect_near(optimizer.ema().values(), {0.95, 1.05}, 1e-8);
  {
    const BorrowedValues borrowed(store, optimizer.ema());
    expect_near(a.values(), {0.95, 1.05}, 1e-8);
  }
  expect_near(a.values(), {0.5, 1.5}, 1e-8);
}

TEST(OptimizerTest, NamesTheFirstParameterThatIsNotFinite) {
  ParameterStore store(Type::f32);
  store.declare("a", {5000}, Init::constant(0));
  const Tensor b = store.declare("b", {5000}, Init::constant(0));
  store.declare("c", {3}, Init::constant(0));
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
