#include "train/recovery.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/log.h"

namespace fovea {
namespace {

constexpr int64_t kSkipsBeforeRollback = 10, kMostRollbacks = 3, kMostRises = 3;
constexpr double kSlowerAfterRollback = 0.5;

void count_skip(const BadUpdate& bad, TrainState& state) {
  ++state.skipped;
  ++state.skipped_in_a_row;
  if (state.epoch_ended == state.update + 1) state.epoch_ended = state.update;
  log_warning("update {} skipped: {} (lines {})", state.update + 1, bad.fault, bad.lines);
}

// Sets the state to that of the checkpoint `good`, whose weights and moments have already been
// restored. Keeps the position in the data and the counts of skipped updates and rollbacks.
void restart_from(const RestoredCheckpoint& good, const BadUpdate& bad, TrainState& state) {
  TrainState next = good.state;
  next.epoch = state.epoch;
  next.batch = state.batch;
  next.drawn = state.drawn;
  next.skipped = state.skipped;
  next.rollbacks = state.rollbacks;
  next.rises = state.rises;
  // A run that stops saves its last checkpoint again, so skipped_in_a_row of the checkpoint depends
  // on interruptions.
  next.skipped_in_a_row = 0;
  next.epoch_ended = std::min(state.epoch_ended, next.update);
  next.rate_factor = state.rate_factor * kSlowerAfterRollback;
  next.parts = state.parts;
  log_warning("{}: {}rolled back to update {}, learning rate × {}", bad.fault,
              good.skipped.empty() ? "" : good.skipped + "; ", next.update, next.rate_factor);
  state = next;
}

// Restores a checkpoint from before the last `high` updates, whose losses were high. Changes the
// weights only if it returns a checkpoint; otherwise sets *why_not. The checkpoint of the update
// just before the first high loss is not used either: its own loss was good, but its weights gave
// that high loss.
std::optional<RestoredCheckpoint> restore_before_rise(const RunCheckpoints& checkpoints,
                                                      const TrainState& state, int64_t high,
                                                      std::string* why_not) {
  if (state.rises >= kMostRises) {
    *why_not = fmt::format("{} rollbacks have not helped", kMostRises);
    return {};
  }
  *why_not = "there is no checkpoint from before the rise";
  try {
    return checkpoints.restore(state.update - high);
  } catch (const Error& error) {
    if (error.code() != ExitCode::model) throw;
    *why_not = "the checkpoints from before the rise are damaged";
    return {};
  }
}

}  // namespace

bool skip_update(const BadUpdate& bad, const RunCheckpoints& checkpoints, TrainState& state) {
  if (state.skipped_in_a_row + 1 < kSkipsBeforeRollback) {
    count_skip(bad, state);
    return false;
  }
  roll_back(bad, checkpoints, state);
  return true;
}

void roll_back(const BadUpdate& bad, const RunCheckpoints& checkpoints, TrainState& state) {
  count_skip(bad, state);
  const std::string where = bad.fault + " (sentences of lines " + bad.lines +
                            "); lower schedule.lr, raise schedule.warmup or set optimizer.clip";
  check(state.rollbacks < kMostRollbacks, ExitCode::diverged, "training diverged at update ",
        state.update + 1, " after ", kMostRollbacks, " rollbacks: ", where);
  const auto good = checkpoints.restore(state.update);
  check(good.has_value(), ExitCode::diverged, "training diverged at update ", state.update + 1,
        ", and there is no checkpoint to roll back to: ", where);
  ++state.rollbacks;
  restart_from(*good, bad, state);
}

bool undo_rise(double loss, const std::string& lines, const RunCheckpoints& checkpoints,
               TrainState& state) {
  if (!state.watch.take(loss)) return false;
  const SpikeWatch watch = std::exchange(state.watch, {});
  const BadUpdate bad{fmt::format("loss {:.3f} is too high: {} updates above {:.3f}, the mean is "
                                  "{:.3f}",
                                  loss, watch.high, watch.limit(), watch.mean),
                      lines};
  std::string why_not;
  const auto good = restore_before_rise(checkpoints, state, watch.high, &why_not);
  if (!good) {
    log_warning("{}; {}, training continues", bad.fault, why_not);
    return false;
  }
  count_skip(bad, state);
  ++state.rises;
  restart_from(*good, bad, state);
  return true;
}

}  // namespace fovea
