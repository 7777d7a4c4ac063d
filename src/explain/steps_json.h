#pragma once

#include <nlohmann/json.hpp>

#include "base/computation_steps.h"

namespace fovea {

// The computation as JSON: a list of {"step", "name", "formula", "of", "weights", "factors",
// "values"}. docs/formats.md describes it.
nlohmann::ordered_json steps_json(const ComputationSteps& steps);

}  // namespace fovea
