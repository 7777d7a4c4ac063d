#pragma once

#include <csignal>
#include <filesystem>

#include "base/signals.h"
#include "train/train_model.h"

namespace fovea {

// Trains in `directory` like the program, from files to model. Stops before update number `stop`,
// like Ctrl-C; 0: trains to the end.
inline RunEnd whole_run(const std::string& directory, TrainOptions o, int64_t stop = 0) {
  o.complete(ExitCode::data);
  std::filesystem::create_directories(directory);
  TrainData data;
  check_files(o);
  load_vocabularies(data, o, directory);
  load_text(data, o);
  fit_model(o.model, data);
  int64_t asked = 0;
  TrainingRun run{.options = o, .settings = "", .directory = directory};
  run.save_requested = [&] {
    if (++asked == stop) request_stop(SIGTERM);
    return false;
  };
  const RunEnd end = train_model(run, data, HeldOut());
  request_stop(0);
  return end;
}

}  // namespace fovea
