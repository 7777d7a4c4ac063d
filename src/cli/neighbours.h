#pragma once

namespace CLI {
class App;
}

namespace fovea {

// Adds `fovea neighbours`: the words whose vectors are most like those of given words.
void add_neighbours(CLI::App& app);

}  // namespace fovea
