#pragma once

#include <string>

#include "importer/import_model.h"

namespace fovea {

// The README.md of an imported model: origin, licence, size and settings.
std::string import_readme(const ImportRequest& request, const ImportedModel& model);

// The name of a file or directory, without folders and extension.
std::string source_name(const std::string& path);

}  // namespace fovea
