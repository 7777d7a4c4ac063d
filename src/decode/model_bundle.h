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
  std::vector<std::string> files;  // one file for both sides, or two files
};

// Loads the vocabularies: vocab.spm or vocab.txt for both sides, otherwise source.* and target.*.
// If there is no vocabulary, or one side has several files, throws ExitCode::model.
VocabularyPair load_vocabularies(const std::string& directory);

// Writes the vocabularies under these names: one file if both vocabularies are equal, otherwise
// two.
void save_vocabularies(const std::string& directory, const Vocabulary& source,
                       const Vocabulary& target);

// Loads a model directory with the checks of load_model. Each vocabulary must have one piece per
// row of the embeddings. If `adapter` names an adapter directory, adds that to the weights.
ModelBundle load_package(const std::string& directory, Device device = Cpu{},
                         const std::string& adapter = "");

// If the models of an ensemble have different vocabularies, throws ExitCode::model.
void check_ensemble(const std::vector<ModelBundle>& bundles);

}  // namespace fovea
