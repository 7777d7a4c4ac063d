#pragma once

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
  // there is none.
  using More = std::byte* (*)(std::size_t bytes, const MemoryUse& use);
  Arena(std::size_t chunk, More more) : chunk_(chunk), more_(more) {}

  std::byte* take(std::size_t bytes);
  void give_back(std::byte* start, std::size_t bytes);
  MemoryUse use();

 private:
  void grow(std::size_t bytes);
  void join(std::byte* start, std::size_t bytes);  // a free block, and free ones that it touches
  void insert(std::byte* start, std::size_t bytes);
  void remove(std::byte* start, std::size_t bytes);

  std::size_t chunk_;
  More more_;
  std::mutex mutex_;
  std::map<std::byte*, std::size_t> by_address_;
  std::set<std::pair<std::size_t, std::byte*>> by_size_;
  MemoryUse use_;
};

}  // namespace fovea
