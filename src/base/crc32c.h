#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace fovea {

// CRC-32C (Castagnoli), with the processor's instruction if it has one. To compute the checksum of
// a text piece by piece, pass as `before` the checksum of the preceding bytes, or 0 for the first
// piece.
uint32_t crc32c(std::span<const std::byte> bytes, uint32_t before = 0);

// Like crc32c(), but always computed from tables. The tests compare crc32c() with this function.
uint32_t crc32c_portable(std::span<const std::byte> bytes, uint32_t before = 0);

}  // namespace fovea
