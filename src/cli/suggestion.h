#pragma once

#include <string>
#include <vector>

namespace fovea {

// The command or option that was probably meant by `typed`, else "". What other toolkits call them
// comes first: "--beam-size" is "--beam", and where --set is among the names "--lr" is
// "--set schedule.lr=N". Then nearest_name() is taken.
std::string meant_name(const std::string& typed, const std::vector<std::string>& names);

}  // namespace fovea
