#pragma once

#include <cstddef>

#include "tensor/device.h"

namespace fovea {

// How much memory a device gives: the most that is ever taken from it, in bytes; 0: whatever there
// is. What would go beyond is out of memory, Error(Exit::memory).
void limit_memory(Device device, std::size_t bytes);
// What can be had in all: the limit, or what is in use and what is free; 0 where nobody knows.
std::size_t memory_at_most(Device device);
// Blocks that nothing uses go back to the device, those of graphs as well: all are forgotten.
void release_memory(Device device);
// For tools that look for accesses beyond the end: see Arena::take_singly.
void allocate_singly(Device device);

// What the functions above do on each kind of device.
namespace memory {
void limit(Cpu, std::size_t bytes);
void limit(Cuda on, std::size_t bytes);
std::size_t at_most(Cpu);
std::size_t at_most(Cuda on);
void release(Cpu on);
void release(Cuda on);
}  // namespace memory

}  // namespace fovea
