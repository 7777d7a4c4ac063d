#pragma once

#include <string>
#include <vector>

#include "train/options.h"

namespace fovea {

// What was set to something else than its default and has no effect with the other settings: the
// setting, where it would count, what was found instead, and what to do.
std::vector<std::string> unused_settings(const TrainOptions& options);

}  // namespace fovea
