#pragma once

namespace fovea {

class Command;

// Adds `fovea average`: one model whose weights are the mean of several.
void add_average(Command& program);

}  // namespace fovea
