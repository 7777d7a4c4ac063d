#pragma once

namespace fovea {

class Command;

// Adds `fovea evaluate`: scores of hypotheses against references, to standard output.
void add_evaluate(Command& program);

}  // namespace fovea
