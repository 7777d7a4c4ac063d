#pragma once

#include <string>
#include <vector>

#include "serve/served_model.h"
#include "tensor/device.h"

namespace fovea {

// Loads the models of a service: `models`, then `runs`, which are directories of training runs. If
// both are empty, loads the bundled models. Throws ExitCode::model or ExitCode::usage if a model
// cannot be served.
ServedModels load_served_models(const std::vector<std::string>& models,
                                const std::vector<std::string>& runs, Device device);

}  // namespace fovea
