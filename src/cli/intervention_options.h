#pragma once

#include <string>
#include <vector>

#include "decode/model_bundle.h"
#include "decode/word_intervention.h"

namespace fovea {

class Command;

// The options that intervene in the attention of a model: masked words, masked heads, and decoder
// steps whose attention is fixed.
struct InterventionOptions {
  std::vector<std::string> masks, heads, forces;

  void add_to(Command& command);
  bool given() const { return !masks.empty() || !heads.empty() || !forces.empty(); }
  // The interventions for a sentence. Throws ExitCode::usage with the name of the option if a word,
  // layer, head or step does not exist.
  WordWhatIf read(const ModelBundle& bundle, const std::string& text) const;
};

}  // namespace fovea
