#include "serve/file_store.h"

#include <fmt/format.h>

#include <iterator>

#include "base/sip_hash.h"

namespace fovea {

std::string random_id() {
  const auto [a, b] = random_secret();
  return fmt::format("{:08x}-{:04x}-4{:03x}-{:04x}-{:012x}", a >> 32, a >> 16 & 0xFFFF, a & 0xFFF,
                     (b >> 48 & 0x3FFF) | 0x8000, b & 0xFFFFFFFFFFFF);
}

std::string FileStore::keep(std::string name, std::string content, Clock::time_point now) {
  const std::lock_guard hold(mutex_);
  bytes_ += content.size() + kBytesEach;
  files_.push_back({random_id(), std::move(name), std::move(content), now});
  by_id_.emplace(files_.back().id, std::prev(files_.end()));
  forget(now);
  return files_.back().id;
}

std::optional<FileStore::File> FileStore::find(const std::string& id, Clock::time_point now) {
  const std::lock_guard hold(mutex_);
  forget(now);
  const auto found = by_id_.find(id);
  if (found == by_id_.end()) return std::nullopt;
  return *found->second;
}

// Removes expired files, then the oldest files until the others are within the limit. Keeps the
// newest file, because keep() returns its id.
void FileStore::forget(Clock::time_point now) {
  while (!files_.empty() &&
         (now - files_.front().made > kAge || (bytes_ > kMostBytes && files_.size() > 1))) {
    bytes_ -= files_.front().content.size() + kBytesEach;
    by_id_.erase(files_.front().id);
    files_.pop_front();
  }
}

}  // namespace fovea
