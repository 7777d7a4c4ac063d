#pragma once

namespace fovea {

class Command;

// Adds `fovea translate`: translates lines of text with a model.
void add_translate(Command& program);

}  // namespace fovea
