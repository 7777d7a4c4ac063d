#include <cmath>

#include "support/parity.h"
#include "train/optimizer.h"

namespace fovea::parity {
namespace {

void adam_case(Trial& t, const Sizes& n, const OptimizerOptions& options) {
  ParameterStore& store = t.store();
  store.declare("a", {n[0]}, ParameterInit::normal(1));
  store.declare("b", {n[1], 3}, ParameterInit::normal(0.1));
  t.ready(store);
  Optimizer optimizer(store, options);
  if (t.drops()) optimizer.freeze({{0, 1 + n[0] / 2}});
  std::vector<double> norms;
  for (int64_t step = 1; step <= 4; ++step) {
    store.gradients().assign(t.constant({store.size()}).values());
    norms.push_back(optimizer.update({step, 0.01, 0.5}));
  }
  t.expect_numbers("norms", norms);
  t.expect_value("values", store.values());
  t.expect_value("m", optimizer.m());
  t.expect_value("v", optimizer.v());
  if (optimizer.ema()) t.expect_value("ema", optimizer.ema());
}

TEST(Parity, Adam) {
  Family family("adam");
  const Shapes shapes{.largest = {3000, 500}, .large = {{300007, 7}, {65536, 4096}}};
  const std::pair<const char*, OptimizerOptions> options[] = {
      {"plain", {}},
      {"clipped", {.clip = 1}},
      {"with weight decay and a mean", {.weight_decay = 0.1, .ema = 0.9}}};
  for (const auto& [name, o] : options)
    family.check_forward(name, Bar::elementwise, shapes,
                         [o = o](Trial& t, const Sizes& n) { adam_case(t, n, o); });
  family.check_forward("not finite", Bar::elementwise, shapes, [](Trial& t, const Sizes& n) {
    t.store().declare("a", {n[0]}, ParameterInit::normal(1));
    t.store().declare("b", {n[1]}, ParameterInit::normal(1));
    t.ready(t.store());
    auto first = [&] {
      const auto* found = first_not_finite(t.store(), t.store().values());
      return found ? 1.0 + static_cast<double>(found->offset) : 0.0;
    };
    std::vector<double> found{first()}, values = t.store().values().values();
    for (const double none : {HUGE_VAL, std::nan("")}) {
      values[t.random().below(values.size())] = none;
      t.store().values().assign(values);
      found.push_back(first());
    }
    t.expect_numbers("first", found);
  });
}

}  // namespace
}  // namespace fovea::parity
