#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "tensor/device.h"
#include "train/training_metrics.h"

namespace fovea {

class ServedModel;
struct ModelSpec;

// The training history of a model: its metrics, and the weights after each update that was saved.
// The run may still be in progress. Not thread-safe.
class TrainingHistory {
 public:
  virtual ~TrainingHistory() = default;

  virtual MetricsTail::News news() const = 0;        // the metrics since the last call
  virtual std::vector<int64_t> updates() const = 0;  // updates with saved weights, ascending
  virtual bool running() const = 0;                  // whether the run is in progress
  // Reads the model after one of these updates. Returns null if it was not saved or was deleted.
  // Throws an Error if the file cannot be read.
  virtual std::shared_ptr<const ServedModel> after(int64_t update) const = 0;

  // Returns the answer of /v1/training: whether the run is in progress, the updates and all
  // metrics. It converts each line of the metrics only once.
  std::string json() const;

 private:
  struct Curves;
  mutable std::shared_ptr<Curves> curves_;
};

// Reads the training history from a directory of `fovea train`: metrics.jsonl, and the weights in
// snapshots/ and checkpoints/. The run may be in progress: files are listed and read on demand.
// Throws ExitCode::model if the directory is not that of a run.
std::shared_ptr<const TrainingHistory> training_run(const ModelSpec& spec, Device device);

}  // namespace fovea
