#pragma once

namespace CLI {
class App;
}

namespace fovea {

// Adds `fovea translate`: translates lines of text with a model.
void add_translate(CLI::App& app);

}  // namespace fovea
