// sources: src/base/safetensors.cpp src/base/safetensors_header.cpp src/base/crc32c.cpp
// sources: src/base/files.cpp src/base/utf8.cpp
// libraries: -lfmt -licuuc
#include <cstdint>
#include <cstdlib>

#include "base/safetensors.h"

using namespace fovea;

// A file is refused with Exit::model, or every tensor of it can be read and written again.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::span bytes(reinterpret_cast<const std::byte*>(data), size);
  try {
    const SafetensorsFile file = SafetensorsFile::parse(bytes, "fuzz");
    SafetensorsWriter writer(Checksums::none);
    size_t sum = 0;
    for (const TensorInfo& tensor : file.tensors()) {
      for (const std::byte b : file.data(tensor)) sum += std::to_integer<size_t>(b);
      if (file.find(tensor.name) != &tensor) std::abort();
      writer.add(tensor.name, tensor.dtype, tensor.shape, file.data(tensor));
    }
    const std::string again = writer.to_string();
    if (SafetensorsFile::parse(as_byte_span(again), "again").tensors().size() !=
        file.tensors().size())
      std::abort();
    file.verify();
  } catch (const Error& error) {
    if (error.code() != Exit::model) std::abort();
  }
  return 0;
}
