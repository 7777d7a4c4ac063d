#pragma once

#include <cstdint>
#include <cstdlib>
#include <vector>

#include "base/check.h"
#include "formats/file_bytes.h"
#include "formats/stored_values.h"
#include "formats/tensor_archive.h"

namespace fovea::testing {

inline void require(bool ok) {
  if (!ok) std::abort();
}

// A copy that has exactly the size of the input, so that the sanitizer detects any read beyond it.
inline FileBytes fuzz_file(const uint8_t* data, size_t size) {
  const auto* bytes = reinterpret_cast<const std::byte*>(data);
  return FileBytes::of(std::vector<std::byte>(bytes, bytes + size), "fuzz");
}

// Reads every tensor of an archive. Its bytes and values must have the size of its shape.
inline void use_archive(const TensorArchive& archive) {
  for (const ArchivedTensor& tensor : archive.tensors()) {
    require(archive.find(tensor.name) == &tensor);
    const TensorBytes bytes = archive.bytes(tensor);
    require(bytes.bytes.size() == checked_size(tensor, archive.path()));
    if (!has_floats(tensor.type)) continue;
    require(archive.floats(tensor).size() == static_cast<size_t>(tensor.elements()));
  }
}

// Calls `read`, which may only throw ExitCode::model.
template <class Read>
void survive(Read read) {
  try {
    read();
  } catch (const Error& error) {
    require(error.code() == ExitCode::model);
  }
}

}  // namespace fovea::testing
