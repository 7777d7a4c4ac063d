// An .npz file is refused with ExitCode::model, or all its tensors can be read. If the first byte
// is odd, the rest is a single array (.npy), because the CRC-32 of zip files stops most changes.
#include <cstdint>

#include "formats/byte_reader.h"
#include "formats/npy_header.h"
#include "formats/npz_archive.h"
#include "support/archive_use.h"

using namespace fovea;
using namespace fovea::testing;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  const FileBytes file = fuzz_file(data + 1, size - 1);
  survive([&] {
    if (data[0] % 2 == 0) {
      use_archive(NpzArchive(file));
      return;
    }
    ByteReader reader(file.bytes, file.path);
    checked_size(read_npy_header(reader, "w"), file.path);
  });
  return 0;
}
