#include "tensor/arena.h"

#include <algorithm>
#include <cassert>

#include "base/check.h"
#include "base/spin_lock.h"

namespace fovea {

std::byte* Arena::take(std::size_t bytes) {
  const BriefLock hold(mutex_);
  std::byte* start = nullptr;
  if (singly_) {
    single_.insert(start = more_(bytes, use_));
    use_.reserved += bytes;
  } else {
    auto fit = by_size_.lower_bound({bytes, nullptr});
    if (fit == by_size_.end()) {
      grow(bytes);
      fit = by_size_.lower_bound({bytes, nullptr});
    }
    const std::size_t size = fit->first;
    start = fit->second;
    remove(start, size);
    if (size > bytes) insert(start + bytes, size - bytes);
  }
  use_.in_use += bytes;
  use_.peak = std::max(use_.peak, use_.in_use);
  return start;
}

void Arena::give_back(std::byte* start, std::size_t bytes) {
  const BriefLock hold(mutex_);
  use_.in_use -= bytes;
  if (single_.erase(start) == 0) return join(start, bytes);
  use_.reserved -= bytes;
  less_(start, bytes);
}

void Arena::take_singly() {
  assert(less_);
  singly_ = true;
}

void Arena::release(Less less) {
  const std::lock_guard hold(mutex_);
  release_blocks(less);
}

std::size_t Arena::release_blocks(Less less) {
  std::size_t released = 0;
  for (auto block = blocks_.begin(); less && block != blocks_.end();) {
    const auto [start, bytes] = *block;
    auto free = by_address_.upper_bound(start);
    const bool any = free != by_address_.begin();  // a free piece begins at or before `start`
    if (any) --free;
    if (!any || free->first + free->second < start + bytes) {
      ++block;
      continue;
    }
    const auto [first, size] = *free;
    remove(first, size);
    if (first < start) insert(first, static_cast<std::size_t>(start - first));
    if (const std::size_t end = static_cast<std::size_t>(start - first) + bytes; end < size)
      insert(start + bytes, size - end);
    less(start, bytes);
    use_.reserved -= bytes;
    released += bytes;
    block = blocks_.erase(block);
  }
  return released;
}

void Arena::join(std::byte* start, std::size_t bytes) {
  const auto may_join = [&](std::byte* at) {
    return blocks_kind_ == Blocks::joined || !blocks_.contains(at);
  };
  auto next = by_address_.lower_bound(start);
  if (next != by_address_.end() && next->first == start + bytes && may_join(next->first)) {
    const std::size_t more = next->second;
    remove(next->first, more);
    bytes += more;
  }
  auto before = by_address_.lower_bound(start);
  if (before != by_address_.begin()) {
    --before;
    if (before->first + before->second == start && may_join(start)) {
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
  std::byte* const start = block_of(block);
  use_.reserved += block;
  blocks_.emplace(start, block);
  join(start, block);
}

std::byte* Arena::block_of(std::size_t bytes) {
  try {
    return more_(bytes, use_);
  } catch (const Error&) {
    if (release_blocks(less_) == 0) throw;
  }
  return more_(bytes, use_);
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
