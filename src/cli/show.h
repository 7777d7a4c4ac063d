#pragma once

namespace CLI {
class App;
}

namespace fovea {

// Adds `fovea show`: draws the attention of a translated sentence.
void add_show(CLI::App& app);

}  // namespace fovea
