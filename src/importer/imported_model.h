#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "importer/imported_weights.h"
#include "models/model_config.h"
#include "text/vocabulary.h"

namespace fovea {

// The model to import, and the language pair to which a multilingual model is bound. Empty codes:
// not given.
struct ImportSource {
  std::string path, from, to;
};

// The origin of an imported model, for its README.md.
struct ImportNotes {
  std::string program;               // "Hugging Face Transformers"
  std::string model;                 // "marian, MarianMTModel"
  std::string licence;               // as the source states it; empty: not stated
  std::string weights;               // the stored types, "F16"
  std::vector<std::string> remarks;  // differences from the original program
};

// A model of another program in the form of a Fovea model directory.
struct ImportedModel {
  ModelConfig config;
  std::unique_ptr<ImportedWeights> weights;
  Vocabulary source, target;
  ImportNotes notes;
};

}  // namespace fovea
