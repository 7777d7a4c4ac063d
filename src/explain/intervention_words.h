#pragma once

#include <string>
#include <vector>

#include "decode/model_bundle.h"
#include "decode/word_intervention.h"

namespace fovea {

// Interventions in the attention of a model, as a user writes them.
struct InterventionWords {
  std::vector<std::string> mask = {};       // words: "dog", "dog#2", "3"
  std::vector<std::string> mask_head = {};  // KIND.LAYER.HEAD: "cross.0.2"
  std::vector<std::string> force = {};      // STEP=WORD: "2=dog"

  bool given() const { return !mask.empty() || !mask_head.empty() || !force.empty(); }
  // Returns the interventions for the sentence `text`. Throws ExitCode::usage with the name of the
  // field if a word, layer, head or step does not exist.
  WordWhatIf read(const ModelBundle& bundle, const std::string& text) const;
};

}  // namespace fovea
