#pragma once

namespace fovea {

class Command;

// Adds `fovea train`: a model directory from a recipe and parallel text.
void add_train(Command& program);

}  // namespace fovea
