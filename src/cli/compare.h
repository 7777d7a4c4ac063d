#pragma once

namespace CLI {
class App;
}

namespace fovea {

// fovea compare: trains a list of models on the same text and shows how they
// differ.
void add_compare(CLI::App& app);

}  // namespace fovea
