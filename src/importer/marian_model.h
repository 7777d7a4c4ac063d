#pragma once

#include <string>

#include "importer/imported_model.h"

namespace fovea {

// Returns whether the path is a model of Marian: an .npz or .bin file, or a directory that has one
// and a vocabulary.
bool is_marian(const std::string& path);

// Imports a Transformer of Marian, Bergamot or Firefox. int8 weights become float32.
ImportedModel import_marian(const ImportSource& source);

}  // namespace fovea
