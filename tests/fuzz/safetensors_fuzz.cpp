#include <cstdint>
#include <cstdlib>

#include "base/safetensors.h"

using namespace fovea;

namespace {

// A valid length before the header is improbable at random. So the first byte selects the form: the
// rest is a complete file, or it is a header, to which we add its length and the number of bytes in
// the second byte.
std::string file_of(const uint8_t* data, size_t size) {
  const std::string rest(reinterpret_cast<const char*>(data) + 2, size - 2);
  if (data[0] % 2 == 0) return rest;
  std::string file;
  for (size_t i = 0; i < 8; ++i) file.push_back(static_cast<char>(rest.size() >> (8 * i)));
  return file + rest + std::string(data[1], 'd');
}

}  // namespace

// A file is refused with ExitCode::model, or every tensor of it can be read and written again.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size < 2) return 0;
  // The string has exactly the size of the file, so that the sanitizer detects any read beyond it.
  const std::string text = file_of(data, size);
  const std::vector<std::byte> bytes(as_byte_span(text).begin(), as_byte_span(text).end());
  try {
    const SafetensorsFile file = SafetensorsFile::parse(bytes, "fuzz");
    SafetensorsWriter writer(ChecksumMode::none);
    for (const TensorInfo& tensor : file.tensors()) {
      if (file.find(tensor.name) != &tensor) std::abort();
      writer.add(tensor.name, tensor.dtype, tensor.shape, file.data(tensor));
    }
    const std::string again = writer.to_string();
    if (SafetensorsFile::parse(as_byte_span(again), "again").tensors().size() !=
        file.tensors().size())
      std::abort();
    file.verify();
  } catch (const Error& error) {
    if (error.code() != ExitCode::model) std::abort();
  }
  return 0;
}
