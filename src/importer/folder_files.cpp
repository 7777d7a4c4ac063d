#include "importer/folder_files.h"

#include <algorithm>

namespace fovea {

std::string file_named(const ModelFolder& folder, std::string_view base) {
  std::string found;
  const auto depth = [](const std::string& name) { return std::ranges::count(name, '/'); };
  for (const std::string& name : folder.names())
    if (std::string_view(name).substr(name.rfind('/') + 1) == base)
      if (found.empty() || depth(name) < depth(found)) found = name;
  return found;
}

std::string first_file_named(const ModelFolder& folder, const std::vector<std::string>& bases) {
  for (const std::string& base : bases)
    if (const std::string name = file_named(folder, base); !name.empty()) return name;
  return "";
}

ForeignSettings settings_of(const ModelFolder& folder, const std::string& name) {
  if (name.empty() || !folder.contains(name)) return {};
  return ForeignSettings::parse(folder.read_text(name, ForeignSettings::kMaxBytes),
                                folder.path_of(name));
}

}  // namespace fovea
