#pragma once

#include <condition_variable>
#include <cstddef>
#include <deque>
#include <functional>
#include <mutex>
#include <string>
#include <thread>
#include <unordered_map>
#include <vector>

namespace fovea {

// Threads that run handlers of large requests, so that reading a large body never stops the thread
// of the connections. Clients take turns: the requests of one client delay a request of another by
// at most one handler per thread.
class HandlerPool {
 public:
  using Work = std::function<void()>;

  // At most `capacity` requests wait.
  HandlerPool(size_t threads, size_t capacity);
  ~HandlerPool() { stop(); }

  bool add(const std::string& client, Work work);  // false: too much waits, or stop() was called
  void stop();  // returns when no handler runs; discards the requests that wait

 private:
  void run();
  Work next();  // REQUIRES: turns_ is not empty; mutex_ is held

  size_t capacity_;
  std::mutex mutex_;
  std::condition_variable arrived_;
  std::unordered_map<std::string, std::deque<Work>> waiting_;  // of each client, never empty
  std::deque<std::string> turns_;                              // the keys of waiting_, next first
  size_t size_ = 0;
  bool stopping_ = false;
  std::vector<std::thread> threads_;
};

}  // namespace fovea
