#pragma once

#include <atomic>
#include <cstddef>
#include <map>
#include <mutex>
#include <set>

#include "tensor/memory.h"

namespace fovea {

// Note [Best fit]
// The arena keeps free blocks by address, to join neighbours, and by size, to find the smallest
// that fits. Among equal sizes it takes the lowest address, so that the choice does not depend on
// history alone.
//
// A memory allocator for one device. Thread-safe. The caller passes the size of a piece to
// give_back(), as it passed it to take().
class Arena {
 public:
  // Gets memory from the device in blocks of a multiple of `chunk` bytes. more(bytes, use) throws
  // if the device has no memory. The arena then returns completely free blocks by less(), if it has
  // one, and tries again. Without less() all addresses stay valid for the graphs that use them,
  // until release(less). Blocks::joined merges free blocks that touch. With Blocks::apart no piece
  // crosses from one block into another.
  using More = std::byte* (*)(std::size_t bytes, const MemoryUse& use);
  using Less = void (*)(std::byte* start, std::size_t bytes);
  enum class Blocks { apart, joined };
  Arena(std::size_t chunk, More more, Less less = nullptr, Blocks blocks = Blocks::joined)
      : chunk_(chunk), more_(more), less_(less), blocks_kind_(blocks) {}

  std::byte* take(std::size_t bytes);
  void give_back(std::byte* start, std::size_t bytes);
  MemoryUse use();
  void release() { release(less_); }  // all blocks that are completely free
  void release(Less less);            // the same by this function, for an arena without less()

  // For tools that look for accesses beyond the end of a piece: from now on the arena gets every
  // piece from the device separately, in the requested size. give_back() returns it immediately.
  void take_singly();
  bool singly() const { return singly_; }

 private:
  void grow(std::size_t bytes);
  std::byte* block_of(std::size_t bytes);
  std::size_t release_blocks(Less less);  // returns the number of bytes
  void join(std::byte* start,
            std::size_t bytes);  // adds a free block and joins it with free neighbours
  void insert(std::byte* start, std::size_t bytes);
  void remove(std::byte* start, std::size_t bytes);

  std::size_t chunk_;
  More more_;
  Less less_;
  Blocks blocks_kind_;
  std::atomic<bool> singly_ = false;
  std::mutex mutex_;
  std::map<std::byte*, std::size_t> blocks_;  // as the device returned them
  std::set<std::byte*> single_;
  std::map<std::byte*, std::size_t> by_address_;
  std::set<std::pair<std::size_t, std::byte*>> by_size_;
  MemoryUse use_;
};

}  // namespace fovea
