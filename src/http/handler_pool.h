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

// A pool of threads that run the handlers of large requests, so that parsing a large body never
// blocks the I/O thread. It serves clients round-robin: the requests of one client delay a
// request of another by at most one handler per thread. Thread-safe.
class HandlerPool {
 public:
  using Work = std::function<void()>;

  // At most `capacity` requests may wait.
  HandlerPool(size_t threads, size_t capacity);
  ~HandlerPool() { stop(); }

  bool add(const std::string& client, Work work);  // false: the queue is full, or stop() was called
  void stop();  // waits for running handlers, discards waiting requests

 private:
  void run();
  Work next();  // REQUIRES: clients_in_order_ is not empty; mutex_ is held

  size_t capacity_;
  std::mutex mutex_;
  std::condition_variable arrived_;
  std::unordered_map<std::string, std::deque<Work>> waiting_;  // of each client, never empty
  std::deque<std::string> clients_in_order_;                   // the keys of waiting_, next first
  size_t size_ = 0;
  bool stopping_ = false;
  std::vector<std::thread> threads_;
};

}  // namespace fovea
