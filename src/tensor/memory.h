#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "tensor/device.h"

namespace fovea {

// Bytes on a device, given back when the last handle goes.
using Buffer = std::shared_ptr<std::byte>;

// Takes at least `bytes` bytes, aligned to kAlignment, from the device's arena. The arena is
// best-fit over large chunks, which go back to the system only where memory is short or
// release_memory() asks for it: a training step that allocates the same sizes in the same order
// gets the same addresses, and memory in use is the high-water mark of one step. Throws
// Error(Exit::memory) with what to lower when the machine has no more.
inline constexpr std::size_t kAlignment = 64;  // on the host; a GPU's is kCudaAlignment
Buffer allocate(std::size_t bytes, Device device);
inline constexpr const char* kNeedsLess =  // said where memory has run out
    "lower the batch size (batch.tokens, --batch-tokens) or --beam, or use a smaller model";

// Both on `device`, not overlapping.
void copy_bytes(const std::byte* from, std::byte* to, std::size_t bytes, Device device);
// Several such copies, none of which reads or writes what another one writes.
struct Move {
  const std::byte* from;
  std::byte* to;
  std::size_t bytes;
};
void copy_all(std::span<const Move> moves, Device device);
// Between the host's own memory and the device's; when they return, the host's may be changed and
// read.
void upload(const std::byte* from, std::byte* to, std::size_t bytes, Device device);
void download(const std::byte* from, std::byte* to, std::size_t bytes, Device device);
// Returns when everything asked of the device so far is done.
void finish(Device device);
// What these bytes of the host hold is not needed any more: whole pages go back to the system, and
// read as zeros from then on.
void give_up(std::byte* start, std::size_t bytes);
// `count` times the same number of 4 bytes.
void fill_words(std::byte* to, std::size_t count, uint32_t word, Device device);

// Bytes taken from the system and bytes in use now.
struct MemoryUse {
  std::size_t reserved = 0, in_use = 0, peak = 0;
};
MemoryUse memory_use(Device device = Cpu{});

// Algorithms of products are chosen by the alignment of what they read: it must not hang on what
// was allocated before.
inline constexpr std::size_t kCudaAlignment = 256;

// What the functions above do on each kind of device.
namespace memory {
void copy(Cpu, const std::byte* from, std::byte* to, std::size_t bytes);
void copy(Cuda on, const std::byte* from, std::byte* to, std::size_t bytes);
void copy_all(Cpu, std::span<const Move> moves);
void copy_all(Cuda on, std::span<const Move> moves);
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

// What the calling thread allocates from.
class Arena;
Arena& arena(Cpu);
Arena& arena(Cuda on);  // one for graphs while one is captured, see Note [Replays]

}  // namespace fovea
