#pragma once

#include <sched.h>

namespace fovea {

// A scope in which the calling thread, and threads that it starts, may run on the cores of all
// OpenMP threads. Without it, OMP_PROC_BIND would bind each thread to one core.
class OnAllCores {
 public:
  OnAllCores() {
    known_ = sched_getaffinity(0, sizeof own_, &own_) == 0;
    cpu_set_t all = own_;
#pragma omp parallel
    {
      cpu_set_t here = {};
      const bool known = sched_getaffinity(0, sizeof here, &here) == 0;
#pragma omp critical
      {
        CPU_OR(&all, &all, &here);
        known_ = known_ && known;
      }
    }
    if (known_) sched_setaffinity(0, sizeof all, &all);
  }
  ~OnAllCores() {
    if (known_) sched_setaffinity(0, sizeof own_, &own_);
  }
  OnAllCores(const OnAllCores&) = delete;
  OnAllCores& operator=(const OnAllCores&) = delete;

 private:
  cpu_set_t own_ = {};
  bool known_ = false;  // false if there are more than 1,024 cores
};

}  // namespace fovea
