#pragma once

namespace fovea {

class Command;

// fovea classify: labels of texts, answers to questions, and what was attended to.
void add_classify(Command& program);

}  // namespace fovea
