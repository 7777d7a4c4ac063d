#pragma once

#include <cstddef>

#include "tensor/device.h"

namespace fovea {

// Limits the memory that the program takes from a device, in bytes; 0 means no limit. If an
// allocation would exceed the limit, it throws Error(ExitCode::memory).
void limit_memory(Device device, std::size_t bytes);
// The total memory that the program can use: the limit. Without a limit, it is the sum of used and
// free memory on a GPU, and 0 (not known) on the host.
std::size_t memory_at_most(Device device);
// Returns unused blocks to the device, also those of graphs. For this it discards all captured
// graphs.
void release_memory(Device device);
// For tools that look for accesses beyond the end of an allocation, see Arena::take_singly().
void allocate_singly(Device device);

// The implementation of the functions above for each kind of device.
namespace memory {
void limit(Cpu, std::size_t bytes);
void limit(Cuda on, std::size_t bytes);
std::size_t at_most(Cpu);
std::size_t at_most(Cuda on);
void release(Cpu on);
void release(Cuda on);
}  // namespace memory

}  // namespace fovea
