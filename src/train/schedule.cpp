#include "train/schedule.h"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace fovea {
namespace {

double rise(double t, double warmup) { return warmup > 0 ? std::min(1.0, t / warmup) : 1.0; }

}  // namespace

void ScheduleOptions::describe(Settings& s) {
  s.choice("kind", kind,
           {{"constant", ScheduleKind::constant},
            {"inverse-sqrt", ScheduleKind::inverse_sqrt},
            {"noam", ScheduleKind::noam},
            {"linear", ScheduleKind::linear},
            {"cosine", ScheduleKind::cosine}},
           "how the learning rate changes after the warm-up");
  s.field("lr", lr, "highest learning rate; for noam its factor").between(0, 100);
  s.field("warmup", warmup, "updates over which the rate rises from 0").between(0, 1e9);
  s.field("total", total, "update at which linear and cosine end; 0: train.updates")
      .between(0, 1e12);
  s.field("floor", floor, "final rate of linear and cosine").at_least(0);
}

double learning_rate(const ScheduleOptions& schedule, int64_t update, int64_t model_size) {
  const double t = static_cast<double>(update), w = static_cast<double>(schedule.warmup);
  const double lr = schedule.lr, floor = schedule.floor;
  const double span = std::max(1.0, static_cast<double>(schedule.total) - w);
  const double part = std::clamp((t - w) / span, 0.0, 1.0);  // finished part of the decay, 0 to 1
  switch (schedule.kind) {
    case ScheduleKind::constant:
      return lr * rise(t, w);
    case ScheduleKind::inverse_sqrt:
      return t <= w ? lr * t / w : lr * std::sqrt(std::max(w, 1.0) / t);
    case ScheduleKind::noam:
      return lr / std::sqrt(static_cast<double>(model_size)) *
             (t <= w ? t * std::pow(w, -1.5) : 1 / std::sqrt(t));
    case ScheduleKind::linear:
      return t <= w ? lr * rise(t, w) : lr + (floor - lr) * part;
    case ScheduleKind::cosine:
      return t <= w ? lr * rise(t, w)
                    : floor + (lr - floor) * (1 + std::cos(std::numbers::pi * part)) / 2;
  }
  return lr;
}

}  // namespace fovea
