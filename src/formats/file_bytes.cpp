#include "formats/file_bytes.h"

#include "base/files.h"

namespace fovea {

FileBytes FileBytes::map(const std::string& path) {
  auto file = std::make_shared<const MappedFile>(path);
  return {path, file->bytes(), file};
}

FileBytes FileBytes::of(std::vector<std::byte> bytes, std::string path) {
  auto owner = std::make_shared<const std::vector<std::byte>>(std::move(bytes));
  return {std::move(path), *owner, owner};
}

}  // namespace fovea
