#pragma once

#include <mutex>

namespace fovea {

// Holds a mutex that others mostly hold for less than a microsecond: who finds it taken tries again
// before going to sleep, which would take ten times as long.
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
