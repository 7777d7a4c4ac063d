#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "tensor/device.h"

namespace fovea {

// Bytes on a device. When the last handle to them is destroyed, they return to the arena.
using Buffer = std::shared_ptr<std::byte>;

// Allocates at least `bytes` bytes, aligned to kAlignment, from the device's arena. The arena takes
// large chunks from the system and uses the smallest free piece that fits. It returns chunks only
// if memory is short or release_memory() is called. If a training step allocates the same sizes in
// the same order as an earlier step, it gets the same addresses. So the reserved memory is the peak
// of one step. Throws Error(ExitCode::memory) with a remedy if the machine has no more memory.
inline constexpr std::size_t kAlignment = 64;  // on the host; on a GPU it is kCudaAlignment
Buffer allocate(std::size_t bytes, Device device);
inline constexpr const char* kNeedsLess =  // the remedy in messages about exhausted memory
    "lower the batch size (batch.tokens, `batch_tokens`) or `beam`, or use a smaller model";

// Copies bytes within `device`. The ranges must not overlap.
void copy_bytes(const std::byte* from, std::byte* to, std::size_t bytes, Device device);
// Several copies within `device`. No copy may read or write bytes that another copy writes.
struct ByteCopy {
  const std::byte* from;
  std::byte* to;
  std::size_t bytes;
};
void copy_all(std::span<const ByteCopy> moves, Device device);
// Copy between the host and the device. After the call, the caller may change and read the host's
// memory.
void upload(const std::byte* from, std::byte* to, std::size_t bytes, Device device);
void download(const std::byte* from, std::byte* to, std::size_t bytes, Device device);
// Waits until the device has finished all its work.
void finish(Device device);
// Discards the contents of `bytes` bytes on the host. Whole pages return to the system. Afterwards
// the bytes in these pages are 0.
void give_up(std::byte* start, std::size_t bytes);
// Writes the 4-byte value `word` to `to`, `count` times.
void fill_words(std::byte* to, std::size_t count, uint32_t word, Device device);

// Bytes taken from the system, bytes in use now, and the maximum of the bytes in use so far.
struct MemoryUse {
  std::size_t reserved = 0, in_use = 0, peak = 0;
};
MemoryUse memory_use(Device device = Cpu{});

// cuBLASLt chooses the algorithm of a product by the alignment of its inputs. With this alignment
// of all allocations, the choice does not depend on earlier allocations.
inline constexpr std::size_t kCudaAlignment = 256;

// The implementation of the functions above for each kind of device.
namespace memory {
void copy(Cpu, const std::byte* from, std::byte* to, std::size_t bytes);
void copy(Cuda on, const std::byte* from, std::byte* to, std::size_t bytes);
void copy_all(Cpu, std::span<const ByteCopy> moves);
void copy_all(Cuda on, std::span<const ByteCopy> moves);
void upload(Cpu, const std::byte* from, std::byte* to, std::size_t bytes);
void upload(Cuda on, const std::byte* from, std::byte* to, std::size_t bytes);
void download(Cpu, const std::byte* from, std::byte* to, std::size_t bytes);
void download(Cuda on, const std::byte* from, std::byte* to, std::size_t bytes);
void fill_words(Cpu, std::byte* to, std::size_t count, uint32_t word);
void fill_words(Cuda on, std::byte* to, std::size_t count, uint32_t word);
void finish(Cpu);
void finish(Cuda on);
MemoryUse use(Cpu);
MemoryUse use(Cuda on);
constexpr std::size_t alignment(Cpu) { return kAlignment; }
constexpr std::size_t alignment(Cuda) { return kCudaAlignment; }
}  // namespace memory

// arena() returns the arena from which the calling thread allocates memory of the device.
class Arena;
Arena& arena(Cpu);
Arena& arena(Cuda on);  // during a capture: the arena of the graphs (Note [Replays])

}  // namespace fovea
