#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "train/checkpoint.h"
#include "train/metrics.h"

namespace fovea {

// One update as it looks from outside.
struct UpdateReport {
  int64_t update, updates, epoch;  // epoch from 1; updates in all, 0: no limit
  double loss, nll;                // per target word, of this update
  double rate, norm;
  int64_t words;
};

// What is told of a run while it goes on. Observers change nothing in it.
class TrainObserver {
 public:
  virtual ~TrainObserver() = default;

  // Before the first update of this program, and after going back to an earlier one: what was
  // written beyond `state` is void.
  virtual void began(const TrainState& state) { (void)state; }
  virtual void updated(const UpdateReport& report) { (void)report; }
  virtual void validating() {}  // begins, and may take a while
  virtual void measured(const Metrics& metrics) { (void)metrics; }
  virtual void saving() {}  // a checkpoint is about to vouch for all that was told
};

using Observers = std::vector<std::unique_ptr<TrainObserver>>;

// Lines of the log, or a progress bar on a terminal. Where labels are smoothed, the loss of
// training is called so: it is higher than that of validation, which is not.
std::unique_ptr<TrainObserver> console_observer(double label_smoothing);
// DIRECTORY/metrics.jsonl and DIRECTORY/tensorboard/.
std::unique_ptr<TrainObserver> metrics_observer(const std::string& directory);
std::unique_ptr<TrainObserver> tensorboard_observer(const std::string& directory);

}  // namespace fovea
