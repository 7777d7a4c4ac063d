#pragma once

#include <cstdint>

#include "base/settings.h"

namespace fovea {

enum class ScheduleKind { constant, inverse_sqrt, noam, linear, cosine };

// How the learning rate changes from update to update.
struct ScheduleOptions {
  ScheduleKind kind = ScheduleKind::inverse_sqrt;
  double lr = 0.0005;     // the highest rate; for noam the factor
  int64_t warmup = 4000;  // updates of linear rise from 0
  int64_t total = 0;      // update at which linear and cosine end; 0: train.updates
  double floor = 0;       // the rate that linear and cosine end at

  void describe(Settings& s);
};

// The rate of update t, counted from 1.
//   constant      lr · min(1, t/w)
//   inverse_sqrt  lr · min(t/w, √(w/t))
//   noam          lr · d^(−½) · min(t^(−½), t · w^(−3/2))          Vaswani et al. 2017, eq. 3
//   linear        lr · t/w, then in a straight line to `floor`
//   cosine        lr · t/w, then along half a cosine to `floor`    Loshchilov and Hutter 2017
// A warm-up of 0 means none. Only noam uses the model's size d.
double learning_rate(const ScheduleOptions& schedule, int64_t update, int64_t model_size);

}  // namespace fovea
