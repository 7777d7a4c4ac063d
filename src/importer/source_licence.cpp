#include "importer/source_licence.h"

#include <algorithm>
#include <filesystem>
#include <sstream>

#include "base/check.h"
#include "base/files.h"
#include "base/utf8.h"

namespace fovea {
namespace {

constexpr size_t kMaxReadme = size_t{1} << 20;
constexpr size_t kMaxLicence = 200;

std::string trimmed(std::string text) {
  const char* const blanks = " \t\r\"'";
  text.erase(0, text.find_first_not_of(blanks));
  text.erase(text.find_last_not_of(blanks) + 1);
  return text;
}

}  // namespace

std::string licence_in_text(const std::string& readme) {
  std::istringstream lines(readme);
  std::string line;
  for (int number = 0; std::getline(lines, line); ++number) {
    const bool front_matter = readme.starts_with("---");
    if (front_matter && line.starts_with("license:")) {
      const std::string licence = trimmed(line.substr(8));
      if (!licence.empty()) return printable(licence, kMaxLicence);
    }
    const bool says = line.find("licensed") != line.npos || line.find("License:") != line.npos ||
                      line.find("Licence:") != line.npos;
    if (says) return printable(trimmed(line), kMaxLicence);
  }
  return "";
}

std::string licence_of(const std::string& directory) {
  const std::filesystem::path folder(directory);
  std::error_code error;
  for (const char* name : {"README.md", "README.txt", "README"}) {
    const auto path = folder / name;
    if (!std::filesystem::is_regular_file(path, error)) continue;
    if (std::filesystem::file_size(path, error) > kMaxReadme) continue;
    const std::string found = licence_in_text(read_file(path.string(), kMaxReadme));
    if (!found.empty()) return found;
  }
  for (const char* name : {"LICENSE", "LICENCE", "LICENSE.txt", "LICENSE.md", "COPYING"})
    if (std::filesystem::is_regular_file(folder / name, error))
      return std::string("see the file ") + name + " of the original";
  return "";
}

}  // namespace fovea
