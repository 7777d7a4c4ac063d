#pragma once

namespace fovea {

class Command;

// Adds `fovea score`: how probable given translations are under a model.
void add_score(Command& program);

}  // namespace fovea
