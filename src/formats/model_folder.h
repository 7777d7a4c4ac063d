#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "formats/file_bytes.h"

namespace fovea {

// The files of a model: a folder, or a zip file such as an .argosmodel package. Names are relative,
// with '/' between their parts. Thread-safe.
class ModelFolder {
 public:
  static constexpr size_t kMaxFiles = 100'000, kMaxName = 1024, kMaxDepth = 8;
  static constexpr uint64_t kMaxFile = uint64_t{1} << 36;

  virtual ~ModelFolder() = default;
  ModelFolder(const ModelFolder&) = delete;
  ModelFolder& operator=(const ModelFolder&) = delete;

  // Opens a folder or a zip file. If all files of a zip file are in one folder, names are relative
  // to that folder.
  static std::unique_ptr<ModelFolder> open(const std::string& path);

  const std::string& path() const { return path_; }
  // All files, sorted by name. Without folders.
  const std::vector<std::string>& names() const { return names_; }
  bool contains(std::string_view name) const;
  std::string path_of(std::string_view name) const { return path_ + "/" + std::string(name); }

  // ExitCode::model if there is no such file or if it is longer than `limit`.
  FileBytes read(std::string_view name, uint64_t limit = kMaxFile) const;
  std::string read_text(std::string_view name, uint64_t limit) const;

 protected:
  explicit ModelFolder(std::string path) : path_(std::move(path)) {}
  void set_names(std::vector<std::string> names);  // sorts them
  virtual FileBytes load(const std::string& name, uint64_t limit) const = 0;

 private:
  std::string path_;
  std::vector<std::string> names_;
};

// Returns why a relative name of a file is unsafe: it is absolute, leads out of the folder, is not
// UTF-8, or is too long. nullptr if it is safe.
const char* unsafe_name(std::string_view name);

}  // namespace fovea
