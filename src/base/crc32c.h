#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace fovea {

// CRC-32C (Castagnoli). Uses the processor's instruction if it has one. `before` is the checksum of
// the preceding bytes, or 0 at the start. So the checksum of a text can be computed piece by piece.
uint32_t crc32c(std::span<const std::byte> bytes, uint32_t before = 0);

// Like crc32c(), but always computed from tables. The tests compare crc32c() with this function.
uint32_t crc32c_portable(std::span<const std::byte> bytes, uint32_t before = 0);

}  // namespace fovea
