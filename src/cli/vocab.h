#pragma once

namespace fovea {

class Command;

// Adds `fovea vocab`: makes a vocabulary of text files, or shows how one cuts a text.
void add_vocab(Command& program);

}  // namespace fovea
