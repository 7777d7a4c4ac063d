#pragma once

namespace fovea {

class Command;

// Adds `fovea neighbours`: the words whose vectors are most like those of given words.
void add_neighbours(Command& program);

}  // namespace fovea
