#pragma once

#include <string>

#include "base/safetensors.h"
#include "importer/imported_model.h"

namespace fovea {

// Which model to import, and where to write it.
struct ImportRequest {
  ImportSource source;
  std::string output;                   // the model directory to write
  std::string name;                     // the title of README.md; empty: from the source
  std::string command, usage;           // lines of README.md: the import, and the use of the model
  StoredType stored = StoredType::F32;  // of the weights; F32 or BF16
  bool replace = false;                 // write into a directory that is not empty
};

// The formats that import_model() reads.
enum class ForeignFormat { hugging_face, ctranslate2, fairseq, marian };

// The format of a file or directory. ExitCode::model with the expected files if it is none.
ForeignFormat detect_format(const std::string& path);

// Reads a model without writing it.
ImportedModel read_foreign_model(const ImportSource& source);

// Imports a model: writes config.yml, model.safetensors, the vocabulary and README.md. A new
// directory appears complete or not at all; in an existing one each file does. Returns the model.
ImportedModel import_model(const ImportRequest& request);

// Writes an imported model into an existing directory, each file atomically.
void write_imported(const ImportedModel& model, const std::string& directory, StoredType stored);

// Throws ExitCode::model with `path`, the file of the foreign settings, if Fovea cannot load a
// model with this configuration.
void check_imported(const ModelConfig& config, const std::string& path);

}  // namespace fovea
