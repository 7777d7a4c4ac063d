#pragma once

namespace fovea {

class Command;

// Adds `fovea bench train` and `fovea bench decode`.
void add_bench(Command& program);

}  // namespace fovea
