#pragma once

#include <string>
#include <vector>

#include "decode/model_bundle.h"
#include "decode/word_intervention.h"

namespace fovea {

// Interventions in the attention of a model, in the form in which a user writes them.
struct InterventionWords {
  std::vector<std::string> mask = {};       // words of the sentence: "dog", "dog#2" or "3"
  std::vector<std::string> mask_head = {};  // each KIND.LAYER.HEAD, such as "cross.0.2"
  std::vector<std::string> force = {};      // each STEP=WORD, such as "2=dog"

  bool given() const { return !mask.empty() || !mask_head.empty() || !force.empty(); }
  // Returns the interventions for the sentence `text`. If a word, layer, head or step does not
  // exist, throws ExitCode::usage with the name of the field.
  WordWhatIf read(const ModelBundle& bundle, const std::string& text) const;
};

}  // namespace fovea
