#include "serve/file_store.h"

#include <fmt/format.h>
#include <sys/random.h>

#include <array>

#include "base/check.h"

namespace fovea {

std::string random_id() {
  std::array<unsigned char, 16> b{};
  check(getrandom(b.data(), b.size(), 0) == static_cast<ssize_t>(b.size()), Exit::unexpected,
        "the system gives no random numbers");
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
  bytes_ += content.size();
  files_.push_back({random_id(), std::move(name), std::move(content), now});
  forget(now);
  return files_.back().id;
}

std::optional<FileStore::File> FileStore::find(const std::string& id, Clock::time_point now) {
  const std::lock_guard hold(mutex_);
  forget(now);
  for (const File& file : files_)
    if (file.id == id) return file;
  return std::nullopt;
}

// All but the newest, which has just been promised to somebody, unless it is old as well.
void FileStore::forget(Clock::time_point now) {
  while (!files_.empty() &&
         (now - files_.front().made > kAge || (bytes_ > kMostBytes && files_.size() > 1))) {
    bytes_ -= files_.front().content.size();
    files_.pop_front();
  }
}

}  // namespace fovea
