#pragma once

namespace fovea {

class Command;

// Adds `fovea inspect`: says what a model directory holds.
void add_inspect(Command& program);

}  // namespace fovea
