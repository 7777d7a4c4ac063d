#pragma once

namespace CLI {
class App;
}

namespace fovea {

// Adds `fovea score`: how probable given translations are under a model.
void add_score(CLI::App& app);

}  // namespace fovea
