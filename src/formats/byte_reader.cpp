#include "formats/byte_reader.h"

namespace fovea {

std::span<const std::byte> ByteReader::take(uint64_t size, std::string_view what) {
  if (size > left())
    fault(what, " needs ", size, " bytes, the file has ", left(), " more (truncated?)");
  const auto taken = bytes_.subspan(at_, size);
  at_ += size;
  return taken;
}

std::string_view ByteReader::text(uint64_t size, std::string_view what) {
  const auto bytes = take(size, what);
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

void ByteReader::expect_items(uint64_t count, uint64_t smallest, std::string_view what) const {
  if (count > left() / smallest)
    fault(count, " ", what, " of at least ", smallest, " bytes each, the file has ", left(),
          " more bytes (truncated?)");
}

void ByteReader::expect_end() const {
  if (left() > 0) fault(left(), " bytes after the end of the content; the file is damaged");
}

}  // namespace fovea
