#pragma once

#include <atomic>
#include <cstddef>
#include <map>
#include <mutex>
#include <set>

#include "tensor/memory.h"

namespace fovea {

// Note [Best fit]
// Free blocks are kept by address (to join neighbours) and by size (to find the smallest that
// fits; the lowest address among equals, so the choice does not depend on history alone).
class Arena {
 public:
  // Memory from the device in blocks of a multiple of `chunk` bytes; more(bytes, use) throws where
  // there is none. Then blocks that are wholly free are first given back by less(), if there is
  // one: with none, addresses stay good for graphs that know them until release() is called.
  // Joined blocks are one where they touch; apart, no piece crosses from one into another.
  using More = std::byte* (*)(std::size_t bytes, const MemoryUse& use);
  using Less = void (*)(std::byte* start, std::size_t bytes);
  enum class Blocks { apart, joined };
  Arena(std::size_t chunk, More more, Less less = nullptr, Blocks blocks = Blocks::joined)
      : chunk_(chunk), more_(more), less_(less), blocks_kind_(blocks) {}

  std::byte* take(std::size_t bytes);
  void give_back(std::byte* start, std::size_t bytes);
  MemoryUse use();
  void release() { release(less_); }  // all blocks that are wholly free
  void release(Less less);            // by this way, where the arena itself gives none back

  // For tools that look for accesses beyond the end: from now on every piece is taken from the
  // device by itself, as large as it was asked for, and given back at once.
  void take_singly();
  bool singly() const { return singly_; }

 private:
  void grow(std::size_t bytes);
  std::byte* block_of(std::size_t bytes);
  std::size_t release_blocks(Less less);           // bytes
  void join(std::byte* start, std::size_t bytes);  // a free block, and free ones that it touches
  void insert(std::byte* start, std::size_t bytes);
  void remove(std::byte* start, std::size_t bytes);

  std::size_t chunk_;
  More more_;
  Less less_;
  Blocks blocks_kind_;
  std::atomic<bool> singly_ = false;
  std::mutex mutex_;
  std::map<std::byte*, std::size_t> blocks_;  // as they came from the device
  std::set<std::byte*> single_;
  std::map<std::byte*, std::size_t> by_address_;
  std::set<std::pair<std::size_t, std::byte*>> by_size_;
  MemoryUse use_;
};

}  // namespace fovea
