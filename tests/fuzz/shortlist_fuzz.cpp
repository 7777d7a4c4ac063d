// A shortlist of Marian is refused with ExitCode::model, or it can be used and written again. If
// the first byte is odd, the checksum is set right first, because it stops most changes.
#include <cstdint>
#include <cstring>
#include <string>

#include "base/files.h"
#include "formats/lexical_shortlist.h"
#include "support/archive_use.h"

using namespace fovea;
using namespace fovea::testing;

namespace {

// Sets the checksum over all words after the first two.
void set_checksum(std::string& bytes) {
  uint64_t sum = 0;
  for (size_t at = 16; at + 8 <= bytes.size(); at += 8) {
    uint64_t word = 0;
    std::memcpy(&word, &bytes[at], 8);
    sum ^= word + 0x9E3779B9 + (sum << 6) + (sum >> 2);
  }
  if (bytes.size() >= 16) std::memcpy(&bytes[8], &sum, 8);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  std::string bytes(reinterpret_cast<const char*>(data) + 1, size - 1);
  if (data[0] % 2 != 0) set_checksum(bytes);
  survive([&] {
    const auto* begin = reinterpret_cast<const uint8_t*>(bytes.data());
    const LexicalShortlist list = read_shortlist(fuzz_file(begin, bytes.size()));
    size_t targets = 0;
    for (size_t i = 0; i < list.sources(); ++i) targets += list.targets_of(i).size();
    require(targets == list.targets.size() && format_shortlist(list) == bytes);
  });
  return 0;
}
