#pragma once

#include <string>
#include <vector>

#include "base/computation_steps.h"
#include "view/terminal.h"

namespace fovea {

// Returns the steps as lines of text. Each step has its number and formula. If a step has a vector
// for the query, the vector is below the formula. If it has values of words, they are columns
// beside the words, as many as fit into the width. Long vectors are cut with …, and weights also
// have bars.
std::string terminal_steps(const ComputationSteps& steps, const std::vector<std::string>& words,
                           const TerminalOptions& options);

}  // namespace fovea
