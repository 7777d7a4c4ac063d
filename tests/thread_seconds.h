#pragma once

#include <ctime>

#include "effort.h"

namespace fovea {

// What this thread alone has used, so that a busy machine does not matter.
inline double thread_seconds() {
  timespec now;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

// Times are promised of the program that people run. Sanitizers make it ten to twenty times slower:
// there the bound only finds what does not end.
inline double time_limit(double seconds) { return only_runs() ? 30 * seconds : seconds; }

}  // namespace fovea
