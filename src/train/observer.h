#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "train/checkpoint.h"
#include "train/training_metrics.h"

namespace fovea {

// The figures of one update.
struct UpdateReport {
  int64_t update, updates, epoch;  // epoch from 1; `updates`: of the whole run, 0: no limit
  double loss, nll;                // per target word, of this update
  double rate, norm;
  int64_t words;
};

// An interface of callbacks for the events of a run. Observers do not change the run.
class TrainObserver {
 public:
  virtual ~TrainObserver() = default;

  // The run calls this before the first update of this process and after each rollback. Records of
  // updates after `state` are no longer valid.
  virtual void began(const TrainState& state) { (void)state; }
  virtual void updated(const UpdateReport& report) { (void)report; }
  virtual void validating() {}  // a validation starts, which may take long
  virtual void measured(const MetricsLine& metrics) { (void)metrics; }
  virtual void saving() {}  // before a checkpoint is saved; must sync the earlier records
};

using Observers = std::vector<std::unique_ptr<TrainObserver>>;

// Writes log lines, or a progress bar on a terminal. With label smoothing it calls the training
// loss "smoothed loss". This loss is higher than the validation loss, which is not smoothed.
std::unique_ptr<TrainObserver> console_observer(double label_smoothing);
// Observers that write DIRECTORY/metrics.jsonl and DIRECTORY/tensorboard/.
std::unique_ptr<TrainObserver> metrics_observer(const std::string& directory);
std::unique_ptr<TrainObserver> tensorboard_observer(const std::string& directory);

}  // namespace fovea
