#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "formats/model_folder.h"
#include "importer/foreign_settings.h"

namespace fovea {

// The name of the file with this base name in the least deep folder; "" if there is none.
std::string file_named(const ModelFolder& folder, std::string_view base);

// file_named() of the first of several base names that exists; "" if there is none.
std::string first_file_named(const ModelFolder& folder, const std::vector<std::string>& bases);

// The settings of a JSON file; without keys if there is no such file or if `name` is "".
ForeignSettings settings_of(const ModelFolder& folder, const std::string& name);

}  // namespace fovea
