#pragma once

#include <memory>
#include <string>

#include "serve/engine.h"
#include "tensor/device.h"

namespace fovea {

// What `fovea train` left in a model directory beside the model: metrics.jsonl, and the weights of
// snapshots/ and checkpoints/. The run may go on: files are listed and read when one is asked for.
// Exit::model where the directory is not one of a run.
std::shared_ptr<const Training> training_run(const EngineSpec& spec, Device device);

}  // namespace fovea
