#pragma once

namespace CLI {
class App;
}

namespace fovea {

// fovea serve: translation as a service over HTTP.
void add_serve(CLI::App& app);

}  // namespace fovea
