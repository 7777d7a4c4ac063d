#pragma once

namespace CLI {
class App;
}

namespace fovea {

// Adds `fovea train`: a model directory from a recipe and parallel text.
void add_train(CLI::App& app);

}  // namespace fovea
