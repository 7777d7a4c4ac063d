#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "train/numbered_files.h"
#include "train/train_task.h"

namespace fovea {

// The checkpoints and snapshots in the directory of a run, and the rule for failed writes: a run
// that has saved a checkpoint may continue if a later write fails.
class RunFiles {
 public:
  explicit RunFiles(const TrainTask& task);

  const FileSeries& checkpoints() const { return checkpoints_; }
  const FileSeries& snapshots() const { return snapshots_; }

  // Creates the directories and removes the temporary files of killed runs.
  void prepare();

  // Calls `write`. Returns false if it failed and the run can continue without the file. Throws
  // ExitCode::files if no checkpoint was saved yet, if no later write follows because the run ends
  // or stops now, or if this was the third failure in a row.
  bool try_write(const TrainState& state, const std::function<void()>& write);

  // Removes the files of later updates, which a rollback has undone.
  void remove_after(int64_t update) const;

 private:
  const TrainTask& task_;
  FileSeries checkpoints_, snapshots_;
  bool ever_saved_ = false;  // a checkpoint of this run exists
  int64_t failures_ = 0;     // failed writes in a row
};

}  // namespace fovea
