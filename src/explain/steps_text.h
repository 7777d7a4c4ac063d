#pragma once

#include <string>
#include <vector>

#include "base/computation_steps.h"
#include "view/terminal.h"

namespace fovea {

// Returns the computation as lines of text. Each step has its number and formula. A vector of the
// query is below the formula. Values of words are in columns beside the words, as many columns as
// fit into the width. Long vectors are truncated with …, and weights also have bars.
std::string terminal_steps(const ComputationSteps& steps, const std::vector<std::string>& words,
                           const TerminalOptions& options);

}  // namespace fovea
