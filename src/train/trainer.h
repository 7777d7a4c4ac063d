#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "train/batch_prefetch.h"
#include "train/run_files.h"
#include "train/run_reporter.h"
#include "train/train_task.h"
#include "train/update_executor.h"
#include "train/validator.h"

namespace fovea {

enum class RunOutcome { finished, interrupted };

// The training loop with validation, checkpoints and recovery from faults. The same task gives the
// same bits, however often it is interrupted and resumed, unless memory was short.
class Trainer {
 public:
  Trainer(TrainTask task, Observers observers);

  // Resumes from the newest checkpoint of the directory and runs to the end or to a signal. Throws
  // ExitCode::files if the first save fails, or later three in a row. Throws ExitCode::diverged if
  // rollbacks did not help. Throws ExitCode::data if the checkpoint has another identity.
  RunOutcome run();

  const TrainState& state() const { return state_; }

 private:
  struct Step {
    StepGraphs::StepResult result = {};
    double rate = 0;
    std::string fault;  // empty: no fault, and the weights are updated
  };

  void begin();
  void resume(const RestoredCheckpoint& restored);
  void check_free_space() const;
  void make_update();
  Step compute();
  static double loss_per_word(const Step& step);
  void record(const Step& step);
  void skip(const Step& step);
  void roll_back(const Step& step);
  bool undo_rise(const Step& step);
  std::optional<RestoredCheckpoint> restore_before_rise(int64_t latest, std::string* why_not);
  void restart_from(const RestoredCheckpoint& good, const Step& step);
  std::vector<int64_t> scheduled_checkpoints(int64_t latest) const;
  void find_expendable();
  void remove_expendable();

  bool at_the_end() const { return fovea::at_the_end(options_, state_); }
  // The update at which train.updates or train.epochs end the run. For epochs this is an estimate,
  // because the number of batches per epoch varies slightly. 0: neither of them is set.
  int64_t updates_in_all() const;
  bool validation_due() const;
  bool save_due();
  bool save_asked();
  void validate();
  bool save();
  void finish();

  TrainTask task_;
  const TrainOptions& options_;
  ParameterStore& store_;
  Optimizer optimizer_;
  UpdateExecutor executor_;
  RunReporter reporter_;
  RunFiles files_;
  Validator validator_;
  TrainState state_;
  std::unique_ptr<BatchStream> stream_;
  std::string lines_;  // of the sentences of the current update, see first_lines()
  static constexpr int64_t kNone = -1;
  int64_t save_tried_ = kNone, logged_save_ = kNone;
  std::set<int64_t> expendable_;  // checkpoints to remove after the next save: find_expendable()
};

}  // namespace fovea
