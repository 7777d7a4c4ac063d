#pragma once

#include <chrono>
#include <cstdint>
#include <optional>

#include "train/gradient.h"
#include "train/observer.h"

namespace fovea {

// Passes the events and the figures of a run to its observers.
class RunReporter {
 public:
  using Clock = std::chrono::steady_clock;

  RunReporter(Observers observers, int64_t log_every);

  void began(const TrainState& state);
  void validating();
  void saving();

  // Adds the cost of an update to the sums in `state`. Every `log_every` updates it reports the
  // means and clears the sums.
  void updated(TrainState& state, const UpdateReport& report, const BatchCost& cost);

  // Completes the line with the update, the epoch and the time.
  void measured(const TrainState& state, MetricsLine metrics);

  // The time since `begin` does not count in words per second.
  void exclude_time_since(Clock::time_point begin) { logged_ += Clock::now() - begin; }

 private:
  void log_training(TrainState& state, const UpdateReport& report);

  Observers observers_;
  int64_t log_every_;
  Clock::time_point logged_;
};

}  // namespace fovea
