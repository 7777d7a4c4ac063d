#pragma once

#include <string>

#include "train/run_checkpoints.h"

namespace fovea {

// Recovery from a bad update. The run skips the update, or it rolls back to a scheduled checkpoint
// and continues with half the learning rate. The position in the data does not go back, so that the
// run does not see the bad batches again.

struct BadUpdate {
  std::string fault;  // "loss is not finite"
  std::string lines;  // line numbers of its sentences, see first_lines()
};

// Skips the update and returns false. If this is the tenth skipped update in a row, rolls back and
// returns true.
bool skip_update(const BadUpdate& bad, const RunCheckpoints& checkpoints, TrainState& state);

// Restores the newest scheduled checkpoint. Throws ExitCode::diverged if there is none, or if three
// rollbacks did not help.
void roll_back(const BadUpdate& bad, const RunCheckpoints& checkpoints, TrainState& state);

// Adds the loss of an update to state.watch. If that completes a rise of the loss, rolls back to a
// checkpoint from before the rise and returns true. If there is no such checkpoint, or if three
// such rollbacks did not help, returns false, and from then on the new loss counts as normal.
bool undo_rise(double loss, const std::string& lines, const RunCheckpoints& checkpoints,
               TrainState& state);

}  // namespace fovea
