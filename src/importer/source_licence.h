#pragma once

#include <string>

namespace fovea {

// The licence that a README.md or model card states: `license:` of its front matter, or the first
// sentence that says what the model is licensed under. Otherwise the name of a licence file of the
// directory; empty if there is none.
std::string licence_of(const std::string& directory);
std::string licence_in_text(const std::string& readme);

}  // namespace fovea
