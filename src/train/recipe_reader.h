#pragma once

#include <functional>

#include "train/train_options.h"

namespace fovea {

// Returns the options of a run whose settings `assign` reads. With train.from, the network of that
// model is the default of the settings of `model`. Throws Error(code) if the network of the recipe
// is another one, and ExitCode::model if there is no such model.
TrainOptions read_recipe(const std::function<void(Settings& settings)>& assign, ExitCode code);

}  // namespace fovea
