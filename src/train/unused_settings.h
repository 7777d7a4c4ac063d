#pragma once

#include <string>
#include <vector>

#include "train/train_options.h"

namespace fovea {

// Returns a warning for each setting that differs from its default but has no effect with the other
// settings. Each warning has the setting, its value, the settings with which it would have an
// effect, and the remedy.
std::vector<std::string> unused_settings(const TrainOptions& options);

}  // namespace fovea
