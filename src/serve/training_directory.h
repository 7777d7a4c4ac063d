#pragma once

#include <memory>
#include <string>

#include "serve/served_model.h"
#include "tensor/device.h"

namespace fovea {

// Reads the training history from a directory of `fovea train`: metrics.jsonl, and the weights in
// snapshots/ and checkpoints/. The run may be in progress: files are listed and read on demand.
// Throws ExitCode::model if the directory is not that of a run.
std::shared_ptr<const TrainingHistory> training_run(const ModelSpec& spec, Device device);

}  // namespace fovea
