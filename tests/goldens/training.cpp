#include "goldens/case.h"
#include "train/optimizer.h"
#include "train/schedule.h"

namespace fovea::goldens {
namespace {

void optimiser(Case& c) {
  ParameterStore store(c.type(), c.device());
  // As matrices, because the reference decays all of its parameters, but Fovea only matrices.
  const auto matrix = [&](const char* name) {
    return Shape{1, static_cast<int64_t>(c.values(name).size())};
  };
  const Tensor a = store.declare("a", matrix("param.a"), ParameterInit::constant(0));
  const Tensor b = store.declare("b", matrix("param.b"), ParameterInit::constant(0));
  store.allocate(1);
  store.allocate_gradients();
  a.assign(c.values("param.a"));
  b.assign(c.values("param.b"));
  Optimizer optimizer(store, {.beta1 = c.number("in.beta1"),
                              .beta2 = c.number("in.beta2"),
                              .eps = c.number("in.eps"),
                              .weight_decay = c.number("in.weight_decay"),
                              .clip = c.number("in.max_norm")});
  std::vector<double> norms, all_a, all_b;
  const auto steps = c.shape("in.lr")[0];
  auto part = [steps](const std::vector<double>& all, int64_t k) {
    const auto size = static_cast<std::ptrdiff_t>(all.size()) / steps;
    return std::vector<double>(all.begin() + k * size, all.begin() + (k + 1) * size);
  };
  for (int64_t k = 0; k < steps; ++k) {
    a.grad().assign(part(c.values("in.grads_a"), k));
    b.grad().assign(part(c.values("in.grads_b"), k));
    norms.push_back(optimizer.update({k + 1, c.values("in.lr")[static_cast<size_t>(k)]}));
    for (const double v : a.values()) all_a.push_back(v);
    for (const double v : b.values()) all_b.push_back(v);
  }
  c.expect("out.norm", norms);
  c.expect("out.a", all_a);
  c.expect("out.b", all_b);
}

void schedule(Case& c) {
  const bool noam = c.name() == "schedule_noam";
  ScheduleOptions options;
  options.kind = noam ? ScheduleKind::noam : ScheduleKind::inverse_sqrt;
  options.lr = c.number(noam ? "in.factor" : "in.base_lr");
  options.warmup = static_cast<int64_t>(c.number("in.warmup"));
  const auto size = noam ? static_cast<int64_t>(c.number("in.d_model")) : 1;
  std::vector<double> rates;
  for (const int32_t step : c.integers("in.steps"))
    rates.push_back(learning_rate(options, step, size));
  c.expect("out.main", rates);
}

}  // namespace

void add_training_cases(std::map<std::string, Run>& cases) {
  cases["optim_adam"] = cases["optim_adamw"] = optimiser;
  cases["schedule_inverse_sqrt"] = cases["schedule_noam"] = schedule;
}

}  // namespace fovea::goldens
