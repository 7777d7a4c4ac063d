#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace fovea {

// CRC-32C (Castagnoli). Uses the processor's instruction if it has one. `before` is the checksum of
// the preceding bytes, so that a text can be summed piece by piece. It is 0 at the start.
uint32_t crc32c(std::span<const std::byte> bytes, uint32_t before = 0);

// The same sum from tables only. The tests compare crc32c() with it.
uint32_t crc32c_portable(std::span<const std::byte> bytes, uint32_t before = 0);

}  // namespace fovea
