#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "train/batch_prefetch.h"
#include "train/run_checkpoints.h"
#include "train/run_files.h"
#include "train/run_reporter.h"
#include "train/run_validator.h"
#include "train/train_task.h"
#include "train/update_executor.h"

namespace fovea {

enum class RunOutcome { finished, interrupted };

// The training loop. In each round it decides whether to update, to validate, to save or to end.
// The same task gives the same bits, regardless of the number of interruptions, unless memory was
// short.
class Trainer {
 public:
  Trainer(TrainTask task, Observers observers);

  // Resumes from the newest checkpoint of the directory and trains until the end of the run or a
  // signal. Throws ExitCode::files if the first save fails, or three later saves in a row. Throws
  // ExitCode::diverged if rollbacks did not help. Throws ExitCode::data if the checkpoint has
  // another identity.
  RunOutcome run();

  const TrainState& state() const { return state_; }

 private:
  // The result of computing an update.
  struct Step {
    StepGraphs::StepResult result = {};
    double rate = 0;
    std::string fault = {};  // empty: no fault, and the weights changed
  };

  void begin();
  void make_update();
  Step compute();
  int64_t updates_in_all() const;
  bool validation_due() const;
  void validate();
  bool save();
  void restart();
  RunOutcome stop();
  RunOutcome finish();

  TrainTask task_;
  const TrainOptions& options_;
  ParameterStore& store_;
  Optimizer optimizer_;
  UpdateExecutor executor_;
  RunReporter reporter_;
  RunFiles files_;
  RunCheckpoints checkpoints_;
  RunValidator validator_;
  TrainState state_;
  std::unique_ptr<BatchStream> stream_;
  std::string lines_;  // line numbers of the newest update, see first_lines()
};

}  // namespace fovea
