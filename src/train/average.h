#pragma once

#include <string>
#include <vector>

#include "nn/params.h"

namespace fovea {

// The mean of the weights of several files, added in double in the order given, as one flat
// tensor of the store's layout. A file is a checkpoint, a snapshot or a model.safetensors with
// the same parameters as the store; Exit::model where it is not.
Tensor mean_weights(const std::vector<std::string>& paths, const ParameterStore& store);

}  // namespace fovea
