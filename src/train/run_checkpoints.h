#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "train/run_files.h"
#include "train/train_task.h"

namespace fovea {

// The checkpoints of a run. Decides when to save one, which to keep, and which a rollback may use.
class RunCheckpoints {
 public:
  // The arguments outlive the RunCheckpoints.
  RunCheckpoints(const TrainTask& task, const Optimizer& optimizer, RunFiles& files);

  // Restores the state, weights and moments of the newest checkpoint. Returns its path, or "" for a
  // new run. Throws ExitCode::data if it has another identity, ExitCode::model if all checkpoints
  // are damaged, ExitCode::files if there is no space for the first checkpoint of a new run.
  std::string resume(TrainState& state);

  // Whether a save is due at this update: by the schedule, or because the user requested one. Sets
  // state.asked accordingly.
  bool due(TrainState& state);
  // Sets state.asked for a save outside of the schedule, for example at the end: true if no
  // scheduled save is due.
  void plan_unscheduled(TrainState& state);

  // Saves the state, the weights and the moments. Returns false if the write failed and the run can
  // continue. Removes checkpoints that are no longer needed.
  bool save(TrainState& state);
  // Whether save() was called since the state reached this update, with or without success.
  bool tried(const TrainState& state) const { return tried_ == state.update; }
  // Makes tried() false. Call it if the state has changed since the last save, but not its update.
  void forget_save() { tried_ = kNone; }

  // Restores the weights and moments of the newest checkpoint up to update `latest`. Uses only
  // checkpoints that an uninterrupted run would have, too, so that interruptions do not change the
  // result. Returns nothing, and changes nothing, if there is none. Throws like resume().
  std::optional<RestoredCheckpoint> restore(int64_t latest) const;

 private:
  std::optional<RestoredCheckpoint> restore_newest(std::vector<int64_t> updates,
                                                   ResumeMode mode) const;
  void check_free_space() const;
  bool scheduled(TrainState& state) const;
  void find_expendable(const TrainState& state);
  void remove_expendable(const TrainState& state);

  static constexpr int64_t kNone = -1;

  const TrainTask& task_;
  const ParameterStore& store_;
  const Optimizer& optimizer_;
  RunFiles& files_;
  int64_t tried_ = kNone, logged_ = kNone;  // updates: last save(); last logged save
  // Checkpoints to remove after the next save, see find_expendable().
  std::set<int64_t> expendable_;
};

}  // namespace fovea
