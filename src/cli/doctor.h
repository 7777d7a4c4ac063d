#pragma once

namespace fovea {

class Command;

// Adds `fovea doctor`: says whether this machine has what the program needs.
void add_doctor(Command& program);

}  // namespace fovea
