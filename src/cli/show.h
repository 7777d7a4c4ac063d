#pragma once

namespace fovea {

class Command;

// Adds `fovea show`: draws the attention of a translated sentence.
void add_show(Command& program);

}  // namespace fovea
