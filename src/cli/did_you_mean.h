#pragma once

#include <string>
#include <vector>

namespace fovea {

// Returns the command or option among `names` that the user probably meant by `typed`, or "". Tries
// names of other toolkits first: "--beam-size" gives "--beam" and, if --set is among the names,
// "--lr" gives "--set schedule.lr=N". For other words returns nearest_name().
std::string suggested_name(const std::string& typed, const std::vector<std::string>& names);

}  // namespace fovea
