#pragma once

#include <string>
#include <string_view>

#include "serve/engine.h"
#include "text/detector.h"

namespace fovea {

// The language that source=auto takes a text for, of those that the models know: the most probable
// one, else one that a model translates into `target` from, with confidence 0. Refusal 400 where
// the text is certainly in a language that no model knows.
Detected source_language(std::string_view text, const Engines& engines, const std::string& target);

}  // namespace fovea
