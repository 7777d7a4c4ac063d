#pragma once

#include <string>

#include "importer/imported_model.h"

namespace fovea {

// Returns whether the path is a checkpoint of fairseq, a .pt file, or a directory with one and with
// a dictionary, dict.*.txt.
bool is_fairseq(const std::string& path);

// Imports a Transformer of fairseq (Ott et al., NAACL 2019).
ImportedModel import_fairseq(const ImportSource& source);

}  // namespace fovea
