#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "base/lines.h"
#include "base/utf8.h"

using namespace fovea;

namespace {

void require(bool ok) {
  if (!ok) std::abort();
}

void check_text(std::string_view text) {
  const std::string clean = replace_invalid_utf8(text);
  require(is_utf8(clean));
  require((clean == text) == is_utf8(text));
  require(count_code_points(clean) == count_code_points(text));
  require(display_width(text) >= 0);
  const std::string normal = nfc(text);
  require(is_utf8(normal) && nfc(normal) == normal);
  require(is_utf8(printable(text)));
}

}  // namespace

// Any bytes give lines or ExitCode::data. Uncompressed bytes have as many lines as line feeds. The
// first byte selects gzip or plain, the second the limit.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size < 2) return 0;
  const std::string_view bytes(reinterpret_cast<const char*>(data) + 2, size - 2);
  const bool gzip = data[0] % 2 == 1;
  const size_t limit = 4 + data[1];
  try {
    LineReader reader = LineReader::over(bytes, gzip ? "fuzz.gz" : "fuzz", limit);
    int64_t lines = 0;
    for (TextLine line; lines < 10'000 && reader.next(line);) {
      require(line.number == ++lines && line.text.size() <= limit);
      require(line.text.find('\n') == std::string_view::npos);
      check_text(line.text);
    }
    if (gzip || lines == 10'000) return 0;
    const int64_t ends = std::ranges::count(bytes, '\n');
    require(lines == ends + (!bytes.empty() && bytes.back() != '\n'));
  } catch (const Error& error) {
    require(error.code() == ExitCode::data);
  }
  return 0;
}
