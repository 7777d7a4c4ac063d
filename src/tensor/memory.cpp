#include "tensor/memory.h"

#include <sys/mman.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <map>
#include <mutex>
#include <set>
#include <vector>

#include "base/check.h"

namespace fovea {
namespace {

constexpr std::size_t kAlignment = 64;
constexpr std::size_t kChunk = std::size_t{8} << 20;
constexpr std::size_t kHugePage = std::size_t{2} << 20;
constexpr std::size_t kSpare = std::size_t{64} << 20;

// Note [Best fit]
// Free blocks are kept by address (to join neighbours) and by size (to find the smallest that
// fits; the lowest address among equals, so the choice does not depend on history alone).
class Arena {
 public:
  std::byte* take(std::size_t bytes) {
    const std::lock_guard hold(mutex_);
    auto fit = by_size_.lower_bound({bytes, nullptr});
    if (fit == by_size_.end()) {
      grow(bytes);
      fit = by_size_.lower_bound({bytes, nullptr});
    }
    auto [size, start] = *fit;
    remove(start, size);
    if (size > bytes) insert(start + bytes, size - bytes);
    use_.in_use += bytes;
    use_.peak = std::max(use_.peak, use_.in_use);
    return start;
  }

  void give_back(std::byte* start, std::size_t bytes) {
    const std::lock_guard hold(mutex_);
    use_.in_use -= bytes;
    auto next = by_address_.lower_bound(start);
    if (next != by_address_.end() && next->first == start + bytes) {
      const std::size_t more = next->second;
      remove(next->first, more);
      bytes += more;
    }
    auto before = by_address_.lower_bound(start);
    if (before != by_address_.begin()) {
      --before;
      if (before->first + before->second == start) {
        start = before->first;
        const std::size_t more = before->second;
        remove(start, more);
        bytes += more;
      }
    }
    insert(start, bytes);
  }

  MemoryUse use() {
    const std::lock_guard hold(mutex_);
    return use_;
  }

 private:
  // Whether others could still get what they need: libraries such as oneDNN, which writes code for
  // each new shape, do not survive without. Writable, for only such pages count everywhere.
  static bool spare_left() {
    void* spare = mmap(nullptr, kSpare, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return spare != MAP_FAILED && munmap(spare, kSpare) == 0;
  }

  void grow(std::size_t bytes) {
    const std::size_t chunk = std::max(kChunk, (bytes + kChunk - 1) / kChunk * kChunk);
    void* start = mmap(nullptr, chunk + kHugePage, PROT_READ | PROT_WRITE,  // room to align it
                       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (start == MAP_FAILED || !spare_left()) {
      if (start != MAP_FAILED) munmap(start, chunk + kHugePage);
      fail(Exit::memory, "out of memory: could not take another ", chunk >> 20, " MiB beside the ",
           use_.reserved >> 20, " MiB in use (", std::strerror(errno),
           "); lower the batch size (batch.tokens, --batch) or use a smaller model");
    }
    const auto address = reinterpret_cast<std::uintptr_t>(start);
    start = reinterpret_cast<void*>((address + kHugePage - 1) / kHugePage * kHugePage);
    madvise(start, chunk, MADV_HUGEPAGE);
    use_.reserved += chunk;
    insert(static_cast<std::byte*>(start), chunk);
  }
  void insert(std::byte* start, std::size_t bytes) {
    by_address_.emplace(start, bytes);
    by_size_.emplace(bytes, start);
  }
  void remove(std::byte* start, std::size_t bytes) {
    by_address_.erase(start);
    by_size_.erase({bytes, start});
  }

  std::mutex mutex_;
  std::map<std::byte*, std::size_t> by_address_;
  std::set<std::pair<std::size_t, std::byte*>> by_size_;
  MemoryUse use_;
};

// Never destroyed: tensors in static storage may outlive any static arena.
Arena& arena(Cpu) {
  static Arena* const host = new Arena;
  return *host;
}

}  // namespace

Buffer allocate(std::size_t bytes, Device device) {
  bytes = std::max(kAlignment, (bytes + kAlignment - 1) / kAlignment * kAlignment);
  return std::visit(
      [bytes](auto on) {
        return Buffer(arena(on).take(bytes),
                      [on, bytes](std::byte* start) { arena(on).give_back(start, bytes); });
      },
      device);
}

void copy_bytes(const std::byte* from, std::byte* to, std::size_t bytes, Device) {
  std::memcpy(to, from, bytes);
}

MemoryUse memory_use() { return arena(Cpu{}).use(); }

}  // namespace fovea
