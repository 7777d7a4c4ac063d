#include <filesystem>
#include <utility>

#include "base/log.h"
#include "ops/matmul.h"
#include "train/trainer.h"

namespace fovea {
namespace {

constexpr double kMebibyte = 1 << 20;

}  // namespace

// Sets state_ to the state of a checkpoint. Its weights are in the store already.
void Trainer::resume(const RestoredCheckpoint& restored) {
  state_ = restored.state;
  save_tried_ = state_.update;
  parameters_changed();
  const std::string before = restored.skipped.empty() ? "" : restored.skipped + "; ";
  log_info("{}resumed from update {}", before, state_.update);
  if (restored.changed.empty()) return;
  log_warning(
      "`resume_anyway`: {}; the result differs from that of an uninterrupted run; if the text or "
      "the batches differ, the epoch starts again",
      restored.changed);
  save_tried_ = kNone;  // saves again, because the next run compares with these settings
  state_.save_waits = true;
  state_.finished = false;
}

// A run that cannot save its first checkpoint would lose its work. Some file systems do not report
// their size; then the first save finds out.
void Trainer::check_free_space() const {
  std::error_code error;
  const auto space = std::filesystem::space(task_.directory, error);
  if (error || space.capacity == 0 || space.capacity == static_cast<uintmax_t>(-1)) return;
  const double available = static_cast<double>(space.available) / kMebibyte;
  const double one = static_cast<double>(checkpoint_bytes(store_, optimizer_)) / kMebibyte;
  const double weights = static_cast<double>(store_.size() * sizeof(float)) / kMebibyte;
  const double most = one * static_cast<double>(options_.checkpoint.keep + 1) +
                      weights * static_cast<double>(options_.train.average + 2);
  const std::string found = fmt::format("{}: {:.1f} MiB are free", task_.directory, available);
  check(available >= one, ExitCode::files, found, ", a checkpoint needs ",
        fmt::format("{:.1f}", one),
        " MiB; free some space, or choose another directory with `output`");
  if (available < most)
    log_warning(
        "{}, this run needs up to {:.1f} MiB ({} checkpoints of {:.1f}); free some space, or "
        "lower checkpoint.keep or train.average",
        found, most, options_.checkpoint.keep + 1, one);
}

// Returns the checkpoints up to `latest` that an uninterrupted run would have too. A rollback uses
// only these, so that interruptions do not change the result.
std::vector<int64_t> Trainer::scheduled_checkpoints(int64_t latest) const {
  std::vector<int64_t> updates = files_.checkpoints().numbers();
  std::erase_if(updates, [&](int64_t n) { return n > latest || expendable_.contains(n); });
  return updates;
}

// Finds checkpoints that an uninterrupted run would not have, damaged ones, and those of another
// identity. They are kept until the next save, are never rolled back to, and do not count for
// checkpoint.keep.
void Trainer::find_expendable() {
  for (const int64_t update : files_.checkpoints().numbers()) {
    const auto note = note_of(files_.checkpoints().path(update));
    const bool damaged = !note || update > state_.update;  // restoring skipped newer ones
    if (damaged || note->state.asked || !difference(note->identity, task_.identity).empty())
      expendable_.insert(update);
  }
}

void Trainer::remove_expendable() {
  expendable_.erase(state_.update);  // has just been overwritten
  for (const int64_t update : std::exchange(expendable_, {})) files_.checkpoints().remove(update);
  if (state_.asked) expendable_.insert(state_.update);
}

// Returns whether the state is on the disk.
bool Trainer::save() {
  save_tried_ = state_.update;
  state_.save_waits = state_.save_waits && state_.asked;
  if (const auto* p = first_not_finite(store_, store_.values())) {
    roll_back({.fault = "weight " + p->name + " is not finite"});
    return false;  // the rollback has saved
  }
  reporter_.saving();
  const bool saved = files_.try_write(state_, [&] {
    write_checkpoint(files_.checkpoints().path(state_.update), {state_, task_.identity}, store_,
                     optimizer_);
  });
  if (!saved) return false;
  if (std::exchange(logged_save_, state_.update) != state_.update)
    log_info("saved update {}", state_.update);
  remove_expendable();
  // A requested checkpoint does not replace a scheduled one. If the loss may be rising, a rollback
  // may need an older one.
  if (state_.asked || state_.watch.high > 0) return true;
  // The loss of these weights is known only after the next update. Until then keep one more.
  const int64_t fewest = at_the_end() ? 1 : 2;
  files_.checkpoints().prune(state_.update, std::max(options_.checkpoint.keep, fewest));
  return true;
}

}  // namespace fovea
