// The index of a sharded model is refused with ExitCode::model, or it gives plain file names.
#include <cstdint>
#include <string>

#include "formats/safetensors_archive.h"
#include "support/archive_use.h"

using namespace fovea;
using namespace fovea::testing;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  survive([&] {
    const std::string json(reinterpret_cast<const char*>(data), size);
    for (const auto& [tensor, file] : read_weight_map(json, "fuzz"))
      require(!file.empty() && file.find('/') == file.npos && file[0] != '.');
  });
  return 0;
}
