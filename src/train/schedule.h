#pragma once

#include <cstdint>

#include "base/settings.h"

namespace fovea {

enum class ScheduleKind { constant, inverse_sqrt, noam, linear, cosine };

// How the learning rate changes from update to update.
struct ScheduleOptions {
  ScheduleKind kind = ScheduleKind::inverse_sqrt;
  double lr = 0.0005;     // the highest rate; for noam the factor
  int64_t warmup = 4000;  // w: number of updates during which the rate rises linearly from 0
  int64_t total = 0;      // the update at which linear and cosine reach `floor`; 0: train.updates
  double floor = 0;       // the last rate of linear and cosine

  void describe(Settings& s);
};

// Returns the learning rate of update t, counted from 1, with w = `warmup`:
//   constant      lr · min(1, t/w)
//   inverse_sqrt  lr · min(t/w, √(w/t))
//   noam          lr · d^(−½) · min(t^(−½), t · w^(−3/2))          Vaswani et al. 2017, eq. 3
//   linear        lr · t/w, then in a straight line to `floor`
//   cosine        lr · t/w, then along half a cosine to `floor`    Loshchilov and Hutter 2017
// Without a warm-up, w is 0. Only noam uses d, the size of the model.
double learning_rate(const ScheduleOptions& schedule, int64_t update, int64_t model_size);

}  // namespace fovea
