#pragma once

namespace fovea {

class Command;

// Adds `fovea align`: which words of sentence pairs belong together, by a model's attention.
void add_align(Command& program);

}  // namespace fovea
