#pragma once

namespace fovea {

class Command;

// fovea serve: translation as a service over HTTP.
void add_serve(Command& program);

}  // namespace fovea
