#include "base/crc32c.h"

#include <gtest/gtest.h>

#include <string_view>
#include <vector>

#include "base/files.h"
#include "base/random.h"

namespace fovea {
namespace {

TEST(Crc32c, KnownAnswers) {  // RFC 3720, B.4
  std::vector<std::byte> bytes(32, std::byte{0});
  EXPECT_EQ(crc32c(bytes), 0x8A9136AAu);
  bytes.assign(32, std::byte{0xFF});
  EXPECT_EQ(crc32c(bytes), 0x62A8AB43u);
  for (int i = 0; i < 32; ++i) bytes[static_cast<size_t>(i)] = static_cast<std::byte>(i);
  EXPECT_EQ(crc32c(bytes), 0x46DD794Eu);
  EXPECT_EQ(crc32c(as_byte_span("123456789")), 0xE3069283u);
  EXPECT_EQ(crc32c({}), 0u);
}

TEST(Crc32c, InstructionAndTablesAgreeWholeAndInPieces) {
  Random random(1);
  for (size_t n = 0; n < 300; ++n) {
    std::vector<std::byte> bytes(n);
    for (std::byte& b : bytes) b = static_cast<std::byte>(random.below(256));
    const uint32_t sum = crc32c(bytes);
    ASSERT_EQ(sum, crc32c_portable(bytes)) << n;
    const std::span<const std::byte> all(bytes);
    const size_t cut = static_cast<size_t>(random.below(n + 1));
    ASSERT_EQ(sum, crc32c(all.subspan(cut), crc32c_portable(all.first(cut)))) << n;
  }
}

}  // namespace
}  // namespace fovea
