// A zip file is refused with ExitCode::model, or every entry is refused or has its size. The first
// byte selects whether names omit the folder of all files.
#include <cstdint>
#include <string>

#include "formats/zip_folder.h"
#include "support/archive_use.h"

using namespace fovea;
using namespace fovea::testing;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  survive([&] {
    const ZipFolder zip(fuzz_file(data + 1, size - 1),
                        data[0] % 2 == 0 ? ZipNames::complete : ZipNames::without_root);
    for (const std::string& name : zip.names())
      survive([&] { require(zip.read(name).bytes.size() == zip.size_of(name)); });
  });
  return 0;
}
