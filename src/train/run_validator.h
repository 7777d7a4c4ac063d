#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <optional>
#include <vector>

#include "train/run_files.h"
#include "train/run_reporter.h"
#include "train/train_task.h"
#include "train/update_executor.h"

namespace fovea {

// Measures the model during a run and selects the weights that become the model: the weights with
// the best validation, or at the end of the run the mean of the last snapshots.
class RunValidator {
 public:
  // The arguments outlive the RunValidator.
  RunValidator(const TrainTask& task, const Optimizer& optimizer, UpdateExecutor& executor,
               RunFiles& files, RunReporter& reporter);

  // Validates the weights, or their moving average if the run keeps one. Writes them as the model
  // if they are the best so far. Returns false if a signal asked the program to stop before the end
  // of the validation.
  bool validate(TrainState& state);

  // Averages the snapshots and measures the model on the test text. Returns false if a signal asked
  // the program to stop before the end of the test.
  bool finish(const TrainState& state);

 private:
  using Metrics = std::optional<std::vector<MetricValue>>;

  Metrics measured(const HeldOut& text, const ValidOptions& options, const TrainState& state);
  void keep_if_best(const std::vector<MetricValue>& values, TrainState& state);
  void average(const TrainState& state);
  bool test(const TrainState& state);

  const TrainTask& task_;
  const TrainOptions& options_;
  const ParameterStore& store_;
  const Optimizer& optimizer_;
  UpdateExecutor& executor_;
  RunFiles& files_;
  RunReporter& reporter_;
  std::function<void()> changed_;  // after the values of store_ have changed
  int64_t most_tokens_ = std::numeric_limits<int64_t>::max();  // of a batch that fits into memory
};

}  // namespace fovea
