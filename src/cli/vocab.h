#pragma once

namespace CLI {
class App;
}

namespace fovea {

// Adds `fovea vocab`: makes a vocabulary of text files, or shows how one cuts a text.
void add_vocab(CLI::App& app);

}  // namespace fovea
