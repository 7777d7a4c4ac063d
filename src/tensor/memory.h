#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "tensor/device.h"

namespace fovea {

// Bytes on a device, given back when the last handle goes.
using Buffer = std::shared_ptr<std::byte>;

// Takes at least `bytes` bytes, aligned to 64, from the device's arena. The arena is best-fit over
// large chunks that are never returned to the system while the program runs: a training step
// that allocates the same sizes in the same order gets the same addresses, and memory in use is
// the high-water mark of one step. Throws Error(Exit::memory) with what to lower when the machine
// has no more.
Buffer allocate(std::size_t bytes, Device device);

// Both on `device`, not overlapping.
void copy_bytes(const std::byte* from, std::byte* to, std::size_t bytes, Device device);

// Bytes taken from the system and bytes in use now, over all devices.
struct MemoryUse {
  std::size_t reserved = 0, in_use = 0, peak = 0;
};
MemoryUse memory_use();

}  // namespace fovea
