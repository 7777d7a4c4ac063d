#pragma once

#include "models/decodable.h"
#include "models/explainable.h"

namespace fovea {

// Each function returns one interface of the model, for a task that needs it. If the model does not
// implement it, throws ExitCode::usage.
const Decodable& decodable(const Model& model);
const Attentive& attentive(const Model& model);
const Explainable& explainable(const Model& model);

}  // namespace fovea
