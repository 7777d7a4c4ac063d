#pragma once

#include <memory>
#include <string>
#include <vector>

#include "models/directory.h"
#include "text/vocabulary.h"

namespace fovea {

// What a model directory holds, ready for use.
struct Package {
  std::string directory;
  ModelConfig config;
  std::unique_ptr<Model> model;
  Vocabulary source, target;
};

struct Vocabularies {
  Vocabulary source, target;
  std::vector<std::string> files;  // one where the vocabulary is joint, else two
};

// vocab.spm or vocab.txt for both sides, or source.* and target.*. Exit::model where there is
// none, or more than one that could be meant.
Vocabularies load_vocabularies(const std::string& directory);

// Writes them under those names; one file where both are the same.
void save_vocabularies(const std::string& directory, const Vocabulary& source,
                       const Vocabulary& target);

// All of a model directory, checked as load_model does; the vocabularies must have one piece per
// row of the embeddings.
Package load_package(const std::string& directory, Device device = Cpu{});

// Models of one ensemble must read and write the same pieces: Exit::model where they do not.
void check_ensemble(const std::vector<Package>& packages);

}  // namespace fovea
