#pragma once

#include <ctime>

namespace fovea {

// What this thread alone has used, so that a busy machine does not matter.
inline double thread_seconds() {
  timespec now;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

}  // namespace fovea
