#pragma once

#include <string>
#include <vector>

namespace fovea {

// The name that was probably meant by `typed`: the nearest by single-letter edits, if it is near
// enough; "" otherwise.
std::string nearest_name(const std::string& typed, const std::vector<std::string>& names);

// The same for commands and options. What other toolkits call them comes first: "--beam-size" is
// "--beam", and where --set is among the names "--lr" is "--set schedule.lr=N".
std::string meant_name(const std::string& typed, const std::vector<std::string>& names);

}  // namespace fovea
