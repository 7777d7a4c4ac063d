#include "tensor/arena.h"

#include <algorithm>

namespace fovea {

std::byte* Arena::take(std::size_t bytes) {
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

void Arena::give_back(std::byte* start, std::size_t bytes) {
  const std::lock_guard hold(mutex_);
  use_.in_use -= bytes;
  join(start, bytes);
}

void Arena::join(std::byte* start, std::size_t bytes) {
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

MemoryUse Arena::use() {
  const std::lock_guard hold(mutex_);
  return use_;
}

void Arena::grow(std::size_t bytes) {
  const std::size_t block = std::max(chunk_, (bytes + chunk_ - 1) / chunk_ * chunk_);
  std::byte* const start = more_(block, use_);
  use_.reserved += block;
  join(start, block);
}

void Arena::insert(std::byte* start, std::size_t bytes) {
  by_address_.emplace(start, bytes);
  by_size_.emplace(bytes, start);
}

void Arena::remove(std::byte* start, std::size_t bytes) {
  by_address_.erase(start);
  by_size_.erase({bytes, start});
}

}  // namespace fovea
