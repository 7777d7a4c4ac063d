#include "tensor/memory.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>

#include "base/available_memory.h"
#include "base/check.h"
#include "tensor/arena.h"
#include "tensor/workspace.h"

namespace fovea {
namespace {

constexpr std::size_t kChunk = std::size_t{8} << 20;
constexpr std::size_t kHugePage = std::size_t{2} << 20;
// Bytes of system memory that must stay free for libraries, which do not use the arena.
constexpr std::size_t kSpare = std::size_t{64} << 20;
std::atomic<std::size_t> limit_of_host{0};

void* map(void* wanted, std::size_t bytes) {
  return mmap(wanted, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
}

// Maps memory. If the range that ends at `above` is free, maps that range, so that the new block
// and the block at `above` can be joined. Otherwise maps memory at any address that begins a huge
// page.
void* map_below(std::byte* above, std::size_t bytes) {
  if (const auto end = reinterpret_cast<std::uintptr_t>(above); end > bytes) {
    void* const below = map(reinterpret_cast<void*>(end - bytes), bytes);
    if (reinterpret_cast<std::uintptr_t>(below) == end - bytes) return below;
    if (below != MAP_FAILED) munmap(below, bytes);
  }
  void* const start = map(nullptr, bytes + kHugePage);
  if (start == MAP_FAILED) return start;
  const auto address = reinterpret_cast<std::uintptr_t>(start);
  const std::size_t before = (kHugePage - address % kHugePage) % kHugePage;
  auto* const first = static_cast<std::byte*>(start) + before;
  if (before > 0) munmap(start, before);
  munmap(first + bytes, kHugePage - before);
  return first;
}

void give_to_system(std::byte* start, std::size_t bytes) { munmap(start, bytes); }

std::byte* more_from_system(std::size_t bytes, const MemoryUse& use) {
  const std::size_t limit = limit_of_host;
  check(limit == 0 || use.reserved + bytes <= limit, ExitCode::memory, "out of memory: another ",
        bytes >> 20, " MiB with the ", use.reserved >> 20, " MiB in use would exceed the limit of ",
        limit >> 20, " MiB; raise `workspace`, ", kNeedsLess);
  static std::byte* last = nullptr;
  void* const start = map_below(last, bytes);
  if (start == MAP_FAILED || !system_has(kSpare)) {
    if (start != MAP_FAILED) munmap(start, bytes);
    fail(ExitCode::memory, "out of memory: cannot allocate another ", bytes >> 20, " MiB with the ",
         use.reserved >> 20, " MiB in use (", std::strerror(errno), "); ", kNeedsLess);
  }
  madvise(start, bytes, MADV_HUGEPAGE);
  return last = static_cast<std::byte*>(start);
}

}  // namespace

// The arena is never destroyed, because tensors in static storage may outlive any static object.
Arena& arena(Cpu) {
  static Arena* const host = new Arena(kChunk, more_from_system, give_to_system);
  return *host;
}

void give_up(std::byte* start, std::size_t bytes) {
  const auto page = static_cast<std::uintptr_t>(sysconf(_SC_PAGESIZE));
  const auto address = reinterpret_cast<std::uintptr_t>(start);
  const std::uintptr_t first = (address + page - 1) / page * page;
  const std::uintptr_t end = (address + bytes) / page * page;
  if (end <= first) return;
  auto* const pages = reinterpret_cast<void*>(first);
  madvise(pages, end - first,
          MADV_NOHUGEPAGE);  // otherwise the next access would get a huge page again
  madvise(pages, end - first, MADV_DONTNEED);
}

namespace memory {

void copy(Cpu, const std::byte* from, std::byte* to, std::size_t bytes) {
  if (bytes > 0) std::memcpy(to, from, bytes);  // an empty span may have a null pointer
}
void copy_all(Cpu on, std::span<const ByteCopy> moves) {
  for (const ByteCopy& m : moves) copy(on, m.from, m.to, m.bytes);
}
void upload(Cpu on, const std::byte* from, std::byte* to, std::size_t bytes) {
  copy(on, from, to, bytes);
}
void download(Cpu on, const std::byte* from, std::byte* to, std::size_t bytes) {
  copy(on, from, to, bytes);
}

void limit(Cpu, std::size_t bytes) { limit_of_host = bytes; }
std::size_t at_most(Cpu) { return limit_of_host; }
void finish(Cpu) {}  // nothing to wait for: work on the host is synchronous
MemoryUse use(Cpu on) { return arena(on).use(); }

void fill_words(Cpu, std::byte* to, std::size_t count, uint32_t word) {
  auto* const words = reinterpret_cast<uint32_t*>(to);
#pragma omp parallel for simd schedule(static) if (count > (1 << 18))
  for (std::size_t i = 0; i < count; ++i) words[i] = word;
}

}  // namespace memory

Buffer allocate(std::size_t bytes, Device device) {
  return std::visit(
      [bytes](auto on) {
        Arena* const from = &arena(on);
        const std::size_t unit = from->singly() ? 1 : memory::alignment(on),
                          whole = std::max(unit, (bytes + unit - 1) / unit * unit);
        return Buffer(from->take(whole),
                      [from, whole](std::byte* start) { from->give_back(start, whole); });
      },
      device);
}

void copy_bytes(const std::byte* from, std::byte* to, std::size_t bytes, Device device) {
  std::visit([&](auto on) { memory::copy(on, from, to, bytes); }, device);
}
void copy_all(std::span<const ByteCopy> moves, Device device) {
  std::visit([&](auto on) { memory::copy_all(on, moves); }, device);
}
void upload(const std::byte* from, std::byte* to, std::size_t bytes, Device device) {
  std::visit([&](auto on) { memory::upload(on, from, to, bytes); }, device);
}
void download(const std::byte* from, std::byte* to, std::size_t bytes, Device device) {
  std::visit([&](auto on) { memory::download(on, from, to, bytes); }, device);
}
void fill_words(std::byte* to, std::size_t count, uint32_t word, Device device) {
  std::visit([&](auto on) { memory::fill_words(on, to, count, word); }, device);
}

void finish(Device device) {
  std::visit([](auto on) { memory::finish(on); }, device);
}

MemoryUse memory_use(Device device) {
  return std::visit([](auto on) { return memory::use(on); }, device);
}

void limit_memory(Device device, std::size_t bytes) {
  std::visit([bytes](auto on) { memory::limit(on, bytes); }, device);
}
std::size_t memory_at_most(Device device) {
  return std::visit([](auto on) { return memory::at_most(on); }, device);
}
void memory::release(Cpu on) { arena(on).release(); }
void release_memory(Device device) {
  std::visit([](auto on) { memory::release(on); }, device);
}
void allocate_singly(Device device) {
  std::visit([](auto on) { arena(on).take_singly(); }, device);
}

}  // namespace fovea
