#include "train/run_checkpoints.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <utility>

#include "base/log.h"
#include "ops/matmul.h"

namespace fovea {
namespace {

constexpr double kMebibyte = 1 << 20;

// Returns the message of an error without the path of the checkpoint, for the log line "skipped
// update 30: …; skipped update 20: …; resumed from update 10".
std::string reason_without_path(const Error& error, const std::string& path) {
  std::string text = error.what();
  for (size_t at; (at = text.find(path + ": ")) != std::string::npos;)
    text.erase(at, path.size() + 2);
  return text;
}

}  // namespace

RunCheckpoints::RunCheckpoints(const TrainTask& task, const Optimizer& optimizer, RunFiles& files)
    : task_(task), store_(task.weights.store()), optimizer_(optimizer), files_(files) {}

std::string RunCheckpoints::resume(TrainState& state) {
  const auto restored = restore_newest(files_.checkpoints().numbers(), task_.resume);
  if (!restored) {
    check_free_space();
    return "";
  }
  state = restored->state;
  tried_ = state.update;
  const std::string before = restored->skipped.empty() ? "" : restored->skipped + "; ";
  log_info("{}resumed from update {}", before, state.update);
  if (!restored->changed.empty()) {
    log_warning(
        "`resume_anyway`: {}; the result differs from that of an uninterrupted run; if the text or "
        "the batches differ, the epoch starts again",
        restored->changed);
    forget_save();  // so that the run saves a checkpoint with the new identity
    state.save_waits = true;
    state.finished = false;
  }
  find_expendable(state);
  return restored->path;
}

// Restores the newest undamaged checkpoint among those of `updates` (ascending).
std::optional<RestoredCheckpoint> RunCheckpoints::restore_newest(std::vector<int64_t> updates,
                                                                 ResumeMode mode) const {
  const FileSeries& files = files_.checkpoints();
  std::string skipped;
  for (; !updates.empty(); updates.pop_back()) {
    const std::string path = files.path(updates.back());
    try {
      auto restored = read_checkpoint(path, task_.identity, store_, optimizer_, mode);
      restored.skipped = skipped;
      task_.weights.changed();
      return restored;
    } catch (const Error& error) {
      if (error.code() == ExitCode::data) throw;  // not damaged: of another run or edited by hand
      if (!skipped.empty()) skipped += "; ";
      skipped +=
          fmt::format("skipped update {}: {}", updates.back(), reason_without_path(error, path));
    }
  }
  check(skipped.empty(), ExitCode::model, files.directory(),
        ": no checkpoint can be read: ", skipped, "; start over with `restart`");
  return {};
}

std::optional<RestoredCheckpoint> RunCheckpoints::restore(int64_t latest) const {
  std::vector<int64_t> updates = files_.checkpoints().numbers();
  std::erase_if(updates, [&](int64_t n) { return n > latest || expendable_.contains(n); });
  return restore_newest(std::move(updates), ResumeMode::exact);
}

// Throws if there is no space for the first checkpoint, because the run would lose its work. Some
// file systems do not report their free space; then the first save fails instead.
void RunCheckpoints::check_free_space() const {
  std::error_code error;
  const auto space = std::filesystem::space(task_.directory, error);
  if (error || space.capacity == 0 || space.capacity == static_cast<uintmax_t>(-1)) return;
  const int64_t keep = task_.options.checkpoint.keep;
  const double available = static_cast<double>(space.available) / kMebibyte;
  const double one = static_cast<double>(checkpoint_bytes(store_, optimizer_)) / kMebibyte;
  const double weights = static_cast<double>(store_.size() * sizeof(float)) / kMebibyte;
  const double most = one * static_cast<double>(keep + 1) +
                      weights * static_cast<double>(task_.options.train.average + 2);
  const std::string found = fmt::format("{}: {:.1f} MiB are free", task_.directory, available);
  check(available >= one, ExitCode::files, found, ", a checkpoint needs ",
        fmt::format("{:.1f}", one),
        " MiB; free some space, or choose another directory with `output`");
  if (available < most)
    log_warning(
        "{}, this run needs up to {:.1f} MiB ({} checkpoints of {:.1f}); free some space, or "
        "lower checkpoint.keep or train.average",
        found, most, keep + 1, one);
}

// Whether the schedule requires a save now. While the loss is too high, a rollback may discard the
// weights, so a save that is due waits until the loss is normal again.
bool RunCheckpoints::scheduled(TrainState& state) const {
  const int64_t every = task_.options.checkpoint.every;
  state.save_waits = state.save_waits || state.update == 0 || state.validated == state.update ||
                     (every > 0 && state.update % every == 0);
  return state.save_waits && state.watch.high == 0;
}

bool RunCheckpoints::due(TrainState& state) {
  if (tried(state)) return false;
  const bool by_schedule = scheduled(state);
  state.asked = !by_schedule && task_.save_requested();
  return by_schedule || state.asked;
}

void RunCheckpoints::plan_unscheduled(TrainState& state) {
  if (!tried(state)) state.asked = !scheduled(state);
}

// Finds the expendable checkpoints: checkpoints that an uninterrupted run would not have, damaged
// checkpoints, and checkpoints of another identity. They stay until the next save. The run never
// rolls back to them, and they do not count for checkpoint.keep.
void RunCheckpoints::find_expendable(const TrainState& state) {
  for (const int64_t update : files_.checkpoints().numbers()) {
    const auto note = note_of(files_.checkpoints().path(update));
    const bool damaged = !note || update > state.update;  // resume() skipped newer checkpoints
    if (damaged || note->state.asked || !difference(note->identity, task_.identity).empty())
      expendable_.insert(update);
  }
}

void RunCheckpoints::remove_expendable(const TrainState& state) {
  expendable_.erase(state.update);  // this checkpoint has just been overwritten
  for (const int64_t update : std::exchange(expendable_, {})) files_.checkpoints().remove(update);
  if (state.asked) expendable_.insert(state.update);
}

bool RunCheckpoints::save(TrainState& state) {
  const FileSeries& files = files_.checkpoints();
  tried_ = state.update;
  state.save_waits = state.save_waits && state.asked;
  const bool saved = files_.try_write(state, [&] {
    write_checkpoint(files.path(state.update), {state, task_.identity}, store_, optimizer_);
  });
  if (!saved) return false;
  if (std::exchange(logged_, state.update) != state.update)
    log_info("saved update {}", state.update);
  remove_expendable(state);
  // After a requested save, older checkpoints stay, because a requested checkpoint does not replace
  // a scheduled one. They also stay while the loss may be rising, because a rollback may need one
  // of them.
  if (state.asked || state.watch.high > 0) return true;
  // The loss of the saved weights is known only after the next update, so the previous checkpoint
  // must stay, too.
  const int64_t fewest = at_the_end(task_.options, state) ? 1 : 2;
  files.prune(state.update, std::max(task_.options.checkpoint.keep, fewest));
  return true;
}

}  // namespace fovea
