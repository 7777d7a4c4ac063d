#include "serve/file_store.h"

#include <fmt/format.h>
#include <sys/random.h>

#include <array>
#include <iterator>

#include "base/check.h"

namespace fovea {

std::string random_id() {
  std::array<unsigned char, 16> b{};
  check(getrandom(b.data(), b.size(), 0) == static_cast<ssize_t>(b.size()), ExitCode::unexpected,
        "cannot read random numbers from the system");
  b[6] = static_cast<unsigned char>((b[6] & 0x0F) | 0x40);  // version 4
  b[8] = static_cast<unsigned char>((b[8] & 0x3F) | 0x80);
  std::string id;
  for (size_t i = 0; i < b.size(); ++i) {
    if (i == 4 || i == 6 || i == 8 || i == 10) id += '-';
    id += fmt::format("{:02x}", b[i]);
  }
  return id;
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

// Removes expired files, and the oldest ones beyond the limit except the newest file, whose id was
// just returned.
void FileStore::forget(Clock::time_point now) {
  while (!files_.empty() &&
         (now - files_.front().made > kAge || (bytes_ > kMostBytes && files_.size() > 1))) {
    bytes_ -= files_.front().content.size() + kBytesEach;
    by_id_.erase(files_.front().id);
    files_.pop_front();
  }
}

}  // namespace fovea
