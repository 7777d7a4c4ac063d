#pragma once

#include <string>
#include <vector>

#include "base/computation_steps.h"
#include "view/terminal.h"

namespace fovea {

// A computation as lines of text: the formula of each step with its number, the vector of a query
// below it, and what each word has in columns beside the word, as many as fit into the width. Of
// long vectors the first numbers are shown, then …; shares are drawn as bars as well.
std::string terminal_steps(const ComputationSteps& steps, const std::vector<std::string>& words,
                           const TerminalOptions& options);

}  // namespace fovea
