#pragma once

#include <chrono>
#include <list>
#include <mutex>
#include <optional>
#include <string>
#include <unordered_map>

namespace fovea {

// A store of translated files until clients download them, in memory only: a name from a client is
// never used on disk. Removes files after kAge, and the oldest files if all exceed kMostBytes.
// Thread-safe.
class FileStore {
 public:
  using Clock = std::chrono::steady_clock;
  struct File {
    std::string id, name, content;
    Clock::time_point made;
  };
  static constexpr std::chrono::minutes kAge{10};
  static constexpr size_t kMostBytes = 64 << 20;
  static constexpr size_t kBytesEach = 4 << 10;  // counted for each file in addition to its content

  // Stores a file. Returns its random id for find().
  std::string keep(std::string name, std::string content, Clock::time_point now = Clock::now());
  std::optional<File> find(const std::string& id, Clock::time_point now = Clock::now());

 private:
  void forget(Clock::time_point now);
  std::mutex mutex_;
  std::list<File> files_;  // the oldest first
  std::unordered_map<std::string, std::list<File>::const_iterator> by_id_;
  size_t bytes_ = 0;
};

std::string random_id();  // 128 random bits as a UUID

}  // namespace fovea
