#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace fovea {

class ServedModel;

// A line of the metrics of a training run.
struct TrainingLine {
  std::string kind;  // "train", "valid", "average", "test"
  int64_t update = 0;
  std::vector<std::pair<std::string, double>> values = {};
};

// The training history of a model: its metrics, and the model after those updates that were saved.
// The run may still be in progress. Not thread-safe.
class TrainingHistory {
 public:
  virtual ~TrainingHistory() = default;

  // The metrics since the last call; all metrics at the first call.
  struct News {
    std::vector<TrainingLine> lines = {};
    bool restarted = false;  // the run was reset: these lines replace all earlier ones
  };
  virtual News news() const = 0;
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

}  // namespace fovea
