#pragma once

#include <memory>
#include <string>
#include <vector>

#include "formats/tensor_archive.h"
#include "importer/foreign_pieces.h"
#include "importer/foreign_settings.h"
#include "importer/imported_model.h"
#include "models/generation_config.h"

namespace fovea {

// A model directory of Hugging Face Transformers.
struct HfCheckpoint {
  std::string directory;
  ForeignSettings config;      // config.json
  ForeignSettings generation;  // generation_config.json, or config.json if there is none
  ForeignSettings tokenizer;   // tokenizer_config.json, without keys if there is none

  static HfCheckpoint open(const std::string& directory);
  std::string file(const std::string& name) const { return directory + "/" + name; }
  bool has(const std::string& name) const;
  // The first of the files that exists. ExitCode::model with all names if there is none.
  std::string first_file(const std::vector<std::string>& names) const;
  // model.safetensors, its index of several files, or pytorch_model.bin.
  std::unique_ptr<TensorArchive> open_weights() const;
  std::string model_type() const { return config.text("model_type", ""); }
};

// The generation settings, which name pieces of the target. Settings that Fovea does not support
// are rejected.
GenerationConfig hf_generation(const HfCheckpoint& checkpoint, const ForeignPieces& target);

// Imports a model directory. The architecture follows from `model_type` of config.json.
ImportedModel import_hf(const ImportSource& source);

}  // namespace fovea
