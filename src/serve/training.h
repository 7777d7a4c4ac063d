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
// after some of its updates. The run may go on meanwhile. For one thread at a time.
class Training {
 public:
  virtual ~Training() = default;

  // What was measured since the last call, at first all of it.
  struct News {
    std::vector<TrainingLine> lines = {};
    bool anew = false;  // the run was taken back: these lines are all that count
  };
  virtual News news() const = 0;
  virtual std::vector<int64_t> updates() const = 0;  // that are kept now, ascending
  virtual bool running() const = 0;                  // more may come
  // The model after one of these updates; null where that is not kept, or not any more. Takes as
  // long as reading it does. An Error where it cannot be read.
  virtual std::shared_ptr<const Engine> after(int64_t update) const = 0;

  // Whether it goes on, the updates and every number that was measured, as /v1/training gives them.
  // Lines are written once.
  std::string told() const;

 private:
  struct Curves;
  mutable std::shared_ptr<Curves> curves_;
};

}  // namespace fovea
