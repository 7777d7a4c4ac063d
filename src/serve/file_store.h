#pragma once

#include <chrono>
#include <deque>
#include <mutex>
#include <optional>
#include <string>

namespace fovea {

// Translated files that wait to be fetched, in memory alone: no name that a client chose is ever a
// name on disk. The oldest go when they are old, or when there is no room.
class FileStore {
 public:
  using Clock = std::chrono::steady_clock;
  struct File {
    std::string id, name, content;
    Clock::time_point made;
  };
  static constexpr std::chrono::minutes kAge{10};
  static constexpr size_t kMostBytes = 64 << 20;

  // The id under which it can be fetched; nobody can guess it.
  std::string keep(std::string name, std::string content, Clock::time_point now = Clock::now());
  std::optional<File> find(const std::string& id, Clock::time_point now = Clock::now());

 private:
  void forget(Clock::time_point now);
  std::mutex mutex_;
  std::deque<File> files_;  // the oldest first
  size_t bytes_ = 0;
};

std::string random_id();  // 128 random bits as a UUID

}  // namespace fovea
