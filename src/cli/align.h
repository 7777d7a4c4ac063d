#pragma once

namespace CLI {
class App;
}

namespace fovea {

// Adds `fovea align`: which words of sentence pairs belong together, by a model's attention.
void add_align(CLI::App& app);

}  // namespace fovea
