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

// The training history of a model: its metrics, and the model after those updates that were saved.
// The run may still be in progress. Not thread-safe.
class TrainingHistory {
 public:
  virtual ~TrainingHistory() = default;

  virtual MetricsTail::News news() const = 0;        // the metrics since the last call
  virtual std::vector<int64_t> updates() const = 0;  // with a saved model, ascending
  virtual bool running() const = 0;                  // whether the run is in progress
  // The model after one of these updates; null if it was not saved or was deleted. Reads the file.
  // Throws an Error if the file cannot be read.
  virtual std::shared_ptr<const ServedModel> after(int64_t update) const = 0;

  // The answer of /v1/training: whether the run is in progress, the updates and all metrics. Each
  // line is converted once.
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
