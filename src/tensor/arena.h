#pragma once

#include <atomic>
#include <cstddef>
#include <map>
#include <mutex>
#include <set>

#include "tensor/memory.h"

namespace fovea {

// Note [Best fit]
// A piece is a range of memory that is free or that a caller uses. The arena keeps free pieces by
// address, to join neighbours, and by size, to find the smallest piece that fits. Among pieces of
// equal size it takes the one with the lowest address. So the choice depends only on the free
// pieces, not on the order in which they became free.
//
// An allocator of the memory of one device. Thread-safe. take() returns a piece. The caller must
// pass the size that it gave to take() to give_back(), too.
class Arena {
 public:
  // The arena gets memory from the device by more(bytes, use), in blocks of a multiple of `chunk`
  // bytes. If more() throws because the device has no memory, the arena returns completely free
  // blocks by less() and tries again. If less is null, blocks stay until release(less), so that
  // graphs may keep their addresses. With Blocks::joined, adjacent free blocks are merged. With
  // Blocks::apart, no piece crosses from one block into another.
  using More = std::byte* (*)(std::size_t bytes, const MemoryUse& use);
  using Less = void (*)(std::byte* start, std::size_t bytes);
  enum class Blocks { apart, joined };
  Arena(std::size_t chunk, More more, Less less = nullptr, Blocks blocks = Blocks::joined)
      : chunk_(chunk), more_(more), less_(less), blocks_kind_(blocks) {}

  std::byte* take(std::size_t bytes);
  void give_back(std::byte* start, std::size_t bytes);
  MemoryUse use();
  void release() { release(less_); }  // returns all completely free blocks to the device
  void release(Less less);            // the same, for an arena that was made without `less`

  // For tools that look for accesses beyond the end of a piece. After this call, take() gets each
  // piece from the device separately, in the requested size, and give_back() returns it to the
  // device immediately.
  void take_singly();
  bool singly() const { return singly_; }

 private:
  void grow(std::size_t bytes);
  std::byte* block_of(std::size_t bytes);
  std::size_t release_blocks(Less less);  // returns the number of bytes released
  void join(std::byte* start,
            std::size_t bytes);  // adds a free piece and joins it with adjacent free pieces
  void insert(std::byte* start, std::size_t bytes);
  void remove(std::byte* start, std::size_t bytes);

  std::size_t chunk_;
  More more_;
  Less less_;
  Blocks blocks_kind_;
  std::atomic<bool> singly_ = false;
  std::mutex mutex_;
  std::map<std::byte*, std::size_t> blocks_;  // start and size of each block, as more() returned it
  std::set<std::byte*> single_;
  std::map<std::byte*, std::size_t> by_address_;
  std::set<std::pair<std::size_t, std::byte*>> by_size_;
  MemoryUse use_;
};

}  // namespace fovea
