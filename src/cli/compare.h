#pragma once

namespace fovea {

class Command;

// fovea compare: trains a list of models on the same text and shows how they
// differ.
void add_compare(Command& program);

}  // namespace fovea
