#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "models/model.h"
#include "train/checkpoint.h"
#include "train/optimizer.h"
#include "train/train_options.h"
#include "train/trained_weights.h"
#include "train/update_executor.h"
#include "train/validation.h"

namespace fovea {

// The input and the callbacks of a Trainer. All references must outlive the Trainer.
struct TrainTask {
  const TrainOptions& options;
  TrainedWeights weights;  // with gradients allocated
  const Corpus& text;
  const HeldOut& valid;
  const HeldOut& test;
  std::string directory;  // exists and is locked
  RunIdentity identity;   // checkpoints must have this identity
  ResumeMode resume = ResumeMode::exact;
  std::vector<StoreRange> frozen = {};  // parameters that training does not change

  TranslateLines translate;
  std::function<void()> write_model;  // writes the trained weights to the directory
  std::function<void()> read_model;   // reads the trained weights from the directory

  // The trainer calls this between two updates. Returns true once for each request of a checkpoint,
  // for example by a signal.
  std::function<bool()> save_requested = [] { return false; };
  DisturbUpdate disturb = nullptr;  // for tests
};

// Whether the run has reached its limit of updates, epochs or validations without a new best.
inline bool at_the_end(const TrainOptions& options, const TrainState& state) {
  const LoopOptions& loop = options.train;
  return (loop.updates > 0 && state.update >= loop.updates) ||
         (loop.epochs > 0 && state.epoch >= loop.epochs) ||
         (options.valid.patience > 0 && state.since_best >= options.valid.patience);
}

}  // namespace fovea
