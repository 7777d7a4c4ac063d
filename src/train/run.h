#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "train/data.h"
#include "train/trainer.h"

namespace fovea {

// How far a run came.
struct RunEnd {
  RunOutcome outcome;
  int64_t updates = 0, parameters = 0;
  Identity identity = {};  // what its checkpoints were made with
};

struct Run {
  TrainOptions options;   // complete, the model fitted to the vocabularies
  std::string settings;   // all of them, for recipe.yml
  std::string directory;  // the model's; this program holds its lock
  Device device = Cpu{};
  std::function<bool()> save_requested = [] { return false; };
  ResumeMode resume = ResumeMode::exact;
  // Removes an earlier run from the directory. If given, it is called after a trial of the first
  // update has succeeded: until then the earlier run stays untouched.
  std::function<void()> remove_earlier = nullptr;
};

// Trains one model on text that is loaded, and measures it on `test` at the end if there is any.
// Resumes a run that the directory holds. Throws as Trainer::run does.
RunEnd train_model(const Run& run, const TrainData& data, const HeldOut& test);

// The end of a run that has nothing left to do, its parameters not counted; nothing where it has
// something to do, or where only train_model can tell.
std::optional<RunEnd> past_end(const Run& run, const TrainData& data);

}  // namespace fovea
