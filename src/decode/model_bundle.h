#pragma once

#include <memory>
#include <string>
#include <vector>

#include "models/model_directory.h"
#include "text/vocabulary.h"

namespace fovea {

// A model with its vocabularies, loaded from a model directory.
struct ModelBundle {
  std::string directory;
  ModelConfig config;
  std::unique_ptr<Model> model;
  Vocabulary source, target;  // `source` is with_compatible_characters()
};

// The vocabularies of both sides and their files.
struct VocabularyPair {
  Vocabulary source, target;
  std::vector<std::string> files;  // one if the vocabulary is joint, otherwise two
};

// Loads vocab.spm or vocab.txt for both sides, or source.* and target.*. Throws ExitCode::model if
// there is no vocabulary, or if there are several files for one side.
VocabularyPair load_vocabularies(const std::string& directory);

// Writes the vocabularies under the same names: one file if both are equal, otherwise two.
void save_vocabularies(const std::string& directory, const Vocabulary& source,
                       const Vocabulary& target);

// Loads a model directory with the checks of load_model. Each vocabulary must have one piece per
// row of the embeddings. If `adapter` names an adapter directory, adds that to the weights.
ModelBundle load_package(const std::string& directory, Device device = Cpu{},
                         const std::string& adapter = "");

// Throws ExitCode::model if the models of an ensemble have different vocabularies.
void check_ensemble(const std::vector<ModelBundle>& bundles);

}  // namespace fovea
