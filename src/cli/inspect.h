#pragma once

namespace CLI {
class App;
}

namespace fovea {

// Adds `fovea inspect`: says what a model directory holds.
void add_inspect(CLI::App& app);

}  // namespace fovea
