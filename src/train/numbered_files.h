#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace fovea {

// The files DIRECTORY/PREFIX-NNNNNNNN.safetensors, numbered by update.
class FileSeries {
 public:
  FileSeries(std::string directory, std::string prefix)
      : directory_(std::move(directory)), prefix_(std::move(prefix)) {}

  const std::string& directory() const { return directory_; }
  std::string path(int64_t number) const;
  std::vector<int64_t> numbers() const;  // of existing files, ascending

  // Of the files with numbers up to `newest`, keeps those with the `keep` highest numbers and
  // removes the others. If it cannot remove a file, it logs a warning. Call it only when file
  // `newest` is safely on the disk.
  void prune(int64_t newest, int64_t keep) const;
  void remove(int64_t number) const;

 private:
  std::string directory_, prefix_;
};

// Creates the directory and its parents, or throws ExitCode::files.
void make_directory(const std::string& path);

// Removes the temporary files that killed runs left. The caller must hold the lock of the
// directory.
void remove_temporaries(const std::string& directory);

}  // namespace fovea
