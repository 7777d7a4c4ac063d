#include "train/run_files.h"

#include "base/log.h"
#include "base/signals.h"

namespace fovea {
namespace {

constexpr int64_t kMostFailures = 3;

}  // namespace

RunFiles::RunFiles(const TrainTask& task)
    : task_(task), checkpoints_(task.directory + "/checkpoints", "checkpoint"),
      snapshots_(task.directory + "/snapshots", "snapshot") {}

void RunFiles::prepare() {
  make_directory(checkpoints_.directory());
  make_directory(snapshots_.directory());
  for (const auto& path : {task_.directory, checkpoints_.directory(), snapshots_.directory()})
    remove_temporaries(path);
  ever_saved_ = !checkpoints_.numbers().empty();
}

bool RunFiles::try_write(const TrainState& state, const std::function<void()>& write) {
  try {
    write();
    failures_ = 0;
    ever_saved_ = true;
    return true;
  } catch (const Error& error) {
    const bool last = !ever_saved_ || at_the_end(task_.options, state) || stop_requested();
    if (error.code() != ExitCode::files || last || ++failures_ >= kMostFailures) throw;
    log_warning("{}; training continues, and the next save tries again", error.what());
    return false;
  }
}

void RunFiles::remove_after(int64_t update) const {
  for (const FileSeries* files : {&checkpoints_, &snapshots_})
    for (const int64_t number : files->numbers())
      if (number > update) files->remove(number);
}

}  // namespace fovea
