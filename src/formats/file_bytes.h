#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace fovea {

// The bytes of a file and the name that error messages give it. The bytes are a mapped file, or
// memory if the file was inside another one. Copies share the bytes.
struct FileBytes {
  std::string path;
  std::span<const std::byte> bytes;
  std::shared_ptr<const void> owner;  // keeps `bytes` alive

  static FileBytes map(const std::string& path);
  static FileBytes of(std::vector<std::byte> bytes, std::string path);
};

}  // namespace fovea
