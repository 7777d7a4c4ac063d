#pragma once

namespace CLI {
class App;
}

namespace fovea {

// fovea classify: labels of texts, answers to questions, and what was attended to.
void add_classify(CLI::App& app);

}  // namespace fovea
