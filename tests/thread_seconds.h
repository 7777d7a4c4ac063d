#pragma once

#include <ctime>

#include "effort.h"

namespace fovea {

// The CPU time of this thread, which does not depend on the load of the machine.
inline double thread_seconds() {
  timespec now;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

// The time limits are for a release build. Sanitizers make the program ten to twenty times slower.
// With them the limit only detects an endless loop.
inline double time_limit(double seconds) { return only_runs() ? 30 * seconds : seconds; }

}  // namespace fovea
