#pragma once

#include <string>

#include "importer/imported_model.h"

namespace fovea {

// Returns whether the path is a directory of CTranslate2, or a package of Argos Translate: an
// .argosmodel file, or its unpacked directory.
bool is_ctranslate2(const std::string& path);

// Imports a Transformer of CTranslate2. Quantised weights become float32.
ImportedModel import_ctranslate2(const ImportSource& source);

}  // namespace fovea
