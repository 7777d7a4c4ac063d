#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace fovea {

// CRC-32C (Castagnoli), with the processor's instruction where it has one. `before` is the
// checksum of what precedes, so that pieces can be summed one after another; 0 at the start.
uint32_t crc32c(std::span<const std::byte> bytes, uint32_t before = 0);

// The same by tables alone: the oracle of the tests.
uint32_t crc32c_portable(std::span<const std::byte> bytes, uint32_t before = 0);

}  // namespace fovea
