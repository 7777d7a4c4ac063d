// A checkpoint of PyTorch is refused with ExitCode::model, or all its tensors can be read. If the
// first byte is odd, the rest is the pickle of the content in the format before PyTorch 1.6, with
// one storage of six numbers. Otherwise it is a complete file.
#include <cstdint>
#include <string>

#include "formats/torch_archive.h"
#include "support/archive_use.h"

using namespace fovea;
using namespace fovea::testing;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  const std::string rest(reinterpret_cast<const char*>(data) + 1, size - 1);
  const std::string magic("\x80\2\x8a\x0a\x6c\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19.", 15);
  const std::string version("\x80\2M\xe9\3.", 6), machine("\x80\2}.", 4);
  const std::string keys(
      "\x80\2](X\1\0\0\0"
      "0e.",
      12);
  const std::string values(
      "\6\0\0\0\0\0\0\0"
      "012345678901234567890123",
      32);
  const std::string file =
      data[0] % 2 == 0 ? rest : magic + version + machine + rest + keys + values;
  survive([&] {
    use_archive(
        TorchArchive(fuzz_file(reinterpret_cast<const uint8_t*>(file.data()), file.size())));
  });
  return 0;
}
