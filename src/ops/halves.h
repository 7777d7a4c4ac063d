#pragma once

#include <omp.h>

#include <cstdint>
#include <exception>

namespace fovea::kernel {

// Note [Halves]
// Where two cores have no cache in common, a line that one wrote and the other reads or writes
// costs several times what lines of its own do. So all kernels cut rows in two at the same place,
// and with two threads a half stays with its thread through a whole step. The sum over many rows
// is the sum of its halves with any number of threads, so that bits do not depend on that number.

// Rows from which their halves are worth products of their own.
inline constexpr int64_t kWorthHalves = 512;

// f(half, first, count) for both halves of n rows; at the same time where there are two threads, of
// which either then runs alone in what it calls.
template <class F>
void in_halves(int64_t n, F f) {
  const int64_t middle = (n + 1) / 2;
  std::exception_ptr failed[2];
  const bool together = omp_get_max_threads() == 2 && !omp_in_parallel();
#pragma omp parallel for num_threads(2) schedule(static, 1) if (together)
  for (int half = 0; half < 2; ++half) {
    try {
      f(half, half ? middle : 0, half ? n - middle : middle);
    } catch (...) {
      failed[half] = std::current_exception();
    }
  }
  for (const std::exception_ptr& e : failed)
    if (e) std::rethrow_exception(e);
}

}  // namespace fovea::kernel
