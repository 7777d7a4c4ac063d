#pragma once

namespace CLI {
class App;
}

namespace fovea {

// Adds `fovea evaluate`: scores of hypotheses against references, to standard output.
void add_evaluate(CLI::App& app);

}  // namespace fovea
