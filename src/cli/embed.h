#pragma once

namespace fovea {

class Command;

// Adds `fovea embed`: learns word vectors from text.
void add_embed(Command& program);

}  // namespace fovea
