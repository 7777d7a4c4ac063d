#pragma once

#include "models/decodable.h"
#include "models/explainable.h"

namespace fovea {

// The model as the interface that a task needs. ExitCode::usage if the model does not implement it.
const Decodable& decodable(const Model& model);
const Attentive& attentive(const Model& model);
const Explainable& explainable(const Model& model);

}  // namespace fovea
