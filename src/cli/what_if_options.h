#pragma once

#include <string>
#include <vector>

#include "decode/package.h"
#include "decode/word_what_if.h"

namespace fovea {

class Command;

// Options that interfere with a model's attention: words and heads that are masked, steps that are
// told where to look.
struct WhatIfOptions {
  std::vector<std::string> masks, heads, forces;

  void add_to(Command& command);
  bool given() const { return !masks.empty() || !heads.empty() || !forces.empty(); }
  // For the sentence as a model reads it. Exit::usage, naming the option, where something that it
  // names does not exist.
  WordWhatIf read(const Package& package, const std::string& text) const;
};

}  // namespace fovea
