#pragma once

namespace CLI {
class App;
}

namespace fovea {

// Adds `fovea embed`: learns word vectors from text.
void add_embed(CLI::App& app);

}  // namespace fovea
