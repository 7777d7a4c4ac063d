#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "train/trainer.h"
#include "train/training_data.h"

namespace fovea {

// The result of train_model().
struct RunEnd {
  RunOutcome outcome;
  int64_t updates = 0, parameters = 0;
  RunIdentity identity = {};  // of its checkpoints
};

// The input of train_model().
struct TrainingRun {
  TrainOptions options;   // after complete() and fit_model()
  std::string settings;   // all settings as text, for recipe.yml
  std::string directory;  // of the run; the caller holds its lock
  Device device = Cpu{};
  std::function<bool()> save_requested = [] { return false; };
  ResumeMode resume = ResumeMode::exact;
  // Removes an earlier run from the directory. If given, train_model() calls it after a trial of
  // the first update has succeeded. If the trial fails, the earlier run remains unchanged.
  std::function<void()> remove_earlier = nullptr;
};

// Trains one model on loaded text. At the end measures it on `test`, unless `test` is empty. If the
// directory has a run, resumes that run. Throws like Trainer::run().
RunEnd train_model(const TrainingRun& run, const TrainData& data, const HeldOut& test);

// Returns the result of a run that is already finished, with 0 for `parameters`. Returns nothing if
// the run is not finished, or if only train_model() can determine this.
std::optional<RunEnd> past_end(const TrainingRun& run, const TrainData& data);

}  // namespace fovea
