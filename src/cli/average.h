#pragma once

namespace CLI {
class App;
}

namespace fovea {

// Adds `fovea average`: one model whose weights are the mean of several.
void add_average(CLI::App& app);

}  // namespace fovea
