#pragma once

#include "models/decodable.h"
#include "models/explainable.h"

namespace fovea {

// These functions return the interface of the model that a task needs. They throw ExitCode::usage
// if the model does not implement it.
const Decodable& decodable(const Model& model);
const Attentive& attentive(const Model& model);
const Explainable& explainable(const Model& model);

}  // namespace fovea
