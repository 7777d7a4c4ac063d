#pragma once

#include <string>
#include <vector>

#include "train/train_options.h"

namespace fovea {

// Returns a warning for each setting that differs from its default but has no effect with the other
// settings. Each warning names the setting, its value, the settings it applies to, and the remedy.
std::vector<std::string> unused_settings(const TrainOptions& options);

}  // namespace fovea
