// A model.bin of CTranslate2 is refused with ExitCode::model, or all its tensors can be read.
#include <cstdint>

#include "formats/ctranslate2_archive.h"
#include "support/archive_use.h"

using namespace fovea;
using namespace fovea::testing;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  survive([&] { use_archive(CTranslate2Archive(fuzz_file(data, size))); });
  return 0;
}
