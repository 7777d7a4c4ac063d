#pragma once

#include <chrono>
#include <cstdint>

#include "train/observer.h"
#include "train/step_graphs.h"

namespace fovea {

// Passes the events and the figures of a run to its observers.
class RunReporter {
 public:
  using Clock = std::chrono::steady_clock;

  RunReporter(Observers observers, int64_t log_every);

  void began(const TrainState& state);
  void validating();
  void saving();

  // Reports the update that led to `state`. `updates` is the number of updates of the run (0: no
  // limit). Adds the cost of the update to the sums in `state`. Every `log_every` updates reports
  // the means and clears the sums.
  void updated(TrainState& state, const StepGraphs::StepResult& step, double rate, int64_t updates);

  // Adds the update, the epoch and the time to the line and passes it to the observers.
  void measured(const TrainState& state, MetricsLine metrics);

  // Excludes the time from `begin` until now from the words per second of the next line.
  void exclude_time_since(Clock::time_point begin) { logged_ += Clock::now() - begin; }

 private:
  void log_training(TrainState& state, double rate, double norm);

  Observers observers_;
  int64_t log_every_;
  Clock::time_point logged_;
};

}  // namespace fovea
