#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace fovea {

class Engine;

// A line of a run's metrics.
struct TrainingLine {
  std::string kind;  // "train", "valid", "average", "test"
  int64_t update = 0;
  std::vector<std::pair<std::string, double>> values = {};
};

// How a model was trained, as far as its run was kept: what was measured, and the model as it was
// after some of its updates.
class Training {
 public:
  virtual ~Training() = default;
  virtual const std::vector<TrainingLine>& lines() const = 0;
  virtual const std::vector<int64_t>& updates() const = 0;  // ascending
  // The model after one of these updates. Takes as long as reading it does; called by the thread
  // of the batcher alone. An Error where it cannot be read any more.
  virtual std::shared_ptr<const Engine> after(int64_t update) const = 0;
};

}  // namespace fovea
