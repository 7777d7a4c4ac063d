#pragma once

#include <nlohmann/json.hpp>

#include "base/computation_steps.h"

namespace fovea {

// Returns the steps as JSON: a list of {"step", "name", "formula", "of", "weights", "factors",
// "values"}. docs/formats.md describes these keys.
nlohmann::ordered_json steps_json(const ComputationSteps& steps);

}  // namespace fovea
