#pragma once

#include <string>
#include <vector>

#include "serve/served_model.h"
#include "tensor/device.h"

namespace fovea {

// The models of a service: `models`, then `runs`, which are directories of training runs. If both
// are empty, the bundled models. `adapter` is the directory of an adapter of the only model.
struct ServedDirectories {
  std::vector<std::string> models = {}, runs = {};
  std::string adapter = {};
};

// Loads the models. Throws ExitCode::model or ExitCode::usage if one cannot be served.
ServedModels load_served_models(const ServedDirectories& directories, Device device);

}  // namespace fovea
