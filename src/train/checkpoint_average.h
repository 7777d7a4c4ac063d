#pragma once

#include <string>
#include <vector>

#include "nn/params.h"

namespace fovea {

// Returns the mean of the weights of several files as one flat tensor with the store's layout. Adds
// the weights in double, in the order of `paths`. Each file is a checkpoint, a snapshot or a
// model.safetensors with the same parameters as the store; otherwise throws ExitCode::model.
Tensor mean_weights(const std::vector<std::string>& paths, const ParameterStore& store);

}  // namespace fovea
