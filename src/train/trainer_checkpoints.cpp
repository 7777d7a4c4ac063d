#include <filesystem>
#include <utility>

#include "base/log.h"
#include "base/signals.h"
#include "ops/matmul.h"
#include "train/trainer.h"

namespace fovea {
namespace {

constexpr int64_t kMostFailedSaves = 3;
constexpr double kMebibyte = 1 << 20;

}  // namespace

// Sets state_ to the state of a checkpoint whose weights are in the store already.
void Trainer::resume(const Restored& restored) {
  state_ = restored.state;
  ever_saved_ = true;
  save_tried_ = state_.update;
  parameters_changed();
  const std::string before = restored.skipped.empty() ? "" : restored.skipped + "; ";
  log_info("{}resumed from update {}", before, state_.update);
  if (restored.changed.empty()) return;
  log_warning(
      "--resume-anyway: {}; the result is not that of an uninterrupted run, and the epoch begins "
      "again",
      restored.changed);
  save_tried_ = kNone;  // the next run compares with these settings
  state_.save_waits = true;
  state_.finished = false;
}

// A run that cannot save its first checkpoint would train for nothing. Some file systems do not
// know their size: then the first save decides.
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
  check(available >= one, Exit::files, found, ", a checkpoint needs ", fmt::format("{:.1f}", one),
        " MiB; free some space, or choose another directory with -o");
  if (available < most)
    log_warning(
        "{}, this run needs up to {:.1f} MiB ({} checkpoints of {:.1f}); free some space, or "
        "lower checkpoint.keep or train.average",
        found, most, options_.checkpoint.keep + 1, one);
}

// What a run that nobody asked to stop or to save could go back to as well.
std::vector<int64_t> Trainer::due_checkpoints(int64_t latest) const {
  std::vector<int64_t> updates = checkpoints_.numbers();
  std::erase_if(updates, [&](int64_t n) { return n > latest || passing_.contains(n); });
  return updates;
}

// Checkpoints that an uninterrupted run would not have, damaged ones, and ones of another identity:
// kept until there is a newer one, never gone back to, and not among the checkpoint.keep.
void Trainer::note_passing() {
  for (const int64_t update : checkpoints_.numbers()) {
    const auto note = note_of(checkpoints_.path(update));
    const bool damaged = !note || update > state_.update;  // a newer one was passed over
    if (damaged || note->state.asked || !difference(note->identity, task_.identity).empty())
      passing_.insert(update);
  }
}

void Trainer::remove_passing() {
  passing_.erase(state_.update);  // written anew
  for (const int64_t update : std::exchange(passing_, {})) checkpoints_.remove(update);
  if (state_.asked) passing_.insert(state_.update);
}

void Trainer::save() {
  save_tried_ = state_.update;
  state_.save_waits = state_.save_waits && state_.asked;
  if (const auto* p = first_not_finite(store_, store_.values())) {
    return roll_back({.fault = "weight " + p->name + " is not finite"});
  }
  for (auto& observer : observers_) observer->saving();
  const bool saved = attempt([&] {
    write_checkpoint(checkpoints_.path(state_.update), {state_, task_.identity}, store_,
                     optimizer_);
  });
  if (!saved) return;
  if (std::exchange(logged_save_, state_.update) != state_.update)
    log_info("saved update {}", state_.update);
  remove_passing();
  if (state_.asked) return;           // what is due is kept as if it were not there
  if (state_.watch.high > 0) return;  // an older one may have to undo this one
  // What these weights cost is known after the next update: until then one more can be needed.
  const int64_t fewest = at_the_end() ? 1 : 2;
  checkpoints_.prune(state_.update, std::max(options_.checkpoint.keep, fewest));
}

bool Trainer::attempt(const std::function<void()>& write) {
  try {
    write();
    failed_saves_ = 0;
    ever_saved_ = true;
    return true;
  } catch (const Error& error) {
    const bool last = !ever_saved_ || at_the_end() || stop_requested();
    if (error.code() != Exit::files || last || ++failed_saves_ >= kMostFailedSaves) throw;
    log_warning("{}; training continues, and the next save tries again", error.what());
    return false;
  }
}

}  // namespace fovea
