#pragma once

namespace CLI {
class App;
}

namespace fovea {

// Adds `fovea doctor`: says whether this machine has what the program needs.
void add_doctor(CLI::App& app);

}  // namespace fovea
