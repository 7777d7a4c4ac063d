#pragma once

#include <string>
#include <vector>

#include "cli/session.h"
#include "serve/engine.h"

namespace fovea {

// The models of `fovea serve`: those of -m, then those of --run; without either the bundled ones.
// Exit::model or Exit::usage if one cannot be served.
Engines load_engines(const std::vector<std::string>& models, const std::vector<std::string>& runs,
                     const ModelChoice& choice);

}  // namespace fovea
