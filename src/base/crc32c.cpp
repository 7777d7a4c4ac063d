#include "base/crc32c.h"

#include <nmmintrin.h>

#include <array>
#include <cstring>

namespace fovea {
namespace {

constexpr uint32_t kPolynomial = 0x82F63B78u;  // Castagnoli, bits reversed

// kTable[k][b] is the CRC remainder of byte b followed by k zero bytes.
constexpr auto kTable = [] {
  std::array<std::array<uint32_t, 256>, 8> table{};
  for (uint32_t b = 0; b < 256; ++b) {
    uint32_t r = b;
    for (int bit = 0; bit < 8; ++bit) r = (r >> 1) ^ (r & 1 ? kPolynomial : 0);
    table[0][b] = r;
  }
  for (size_t k = 1; k < 8; ++k)
    for (size_t b = 0; b < 256; ++b)
      table[k][b] = (table[k - 1][b] >> 8) ^ table[0][table[k - 1][b] & 255];
  return table;
}();

uint32_t byte_at(std::span<const std::byte> bytes, size_t i) {
  return std::to_integer<uint32_t>(bytes[i]);
}

__attribute__((target("sse4.2"))) uint32_t crc32c_sse42(std::span<const std::byte> bytes,
                                                        uint32_t before) {
  uint64_t r = static_cast<uint32_t>(~before);
  size_t i = 0;
  for (; i + 8 <= bytes.size(); i += 8) {
    uint64_t word;
    std::memcpy(&word, bytes.data() + i, 8);
    r = _mm_crc32_u64(r, word);
  }
  uint32_t rest = static_cast<uint32_t>(r);
  for (; i < bytes.size(); ++i) rest = _mm_crc32_u8(rest, static_cast<uint8_t>(bytes[i]));
  return ~rest;
}

}  // namespace

uint32_t crc32c_portable(std::span<const std::byte> bytes, uint32_t before) {
  uint32_t r = ~before;
  size_t i = 0;
  for (; i + 8 <= bytes.size(); i += 8) {
    uint32_t next = 0;
    for (size_t k = 0; k < 4; ++k)
      next ^= kTable[7 - k][((r >> (8 * k)) & 255) ^ byte_at(bytes, i + k)] ^
              kTable[3 - k][byte_at(bytes, i + 4 + k)];
    r = next;
  }
  for (; i < bytes.size(); ++i) r = (r >> 8) ^ kTable[0][(r & 255) ^ byte_at(bytes, i)];
  return ~r;
}

uint32_t crc32c(std::span<const std::byte> bytes, uint32_t before) {
  static const bool has_instruction = __builtin_cpu_supports("sse4.2");
  if (has_instruction) return crc32c_sse42(bytes, before);
  return crc32c_portable(bytes, before);
}

}  // namespace fovea
