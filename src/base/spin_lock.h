#pragma once

#include <mutex>

namespace fovea {

// A lock guard for a mutex that threads usually hold for less than a microsecond. It tries 100
// times to lock before it sleeps, because sleeping takes ten times longer than the usual wait.
class BriefLock {
 public:
  explicit BriefLock(std::mutex& mutex) : mutex_(mutex) {
    for (int tries = 0; tries < 100; ++tries) {
      if (mutex_.try_lock()) return;
      __builtin_ia32_pause();
    }
    mutex_.lock();
  }
  ~BriefLock() { mutex_.unlock(); }
  BriefLock(const BriefLock&) = delete;
  BriefLock& operator=(const BriefLock&) = delete;

 private:
  std::mutex& mutex_;
};

}  // namespace fovea
