#pragma once

#include <omp.h>

#include <cstdint>
#include <exception>

namespace fovea::kernel {

// Note [Halves]
// If two cores share no cache, a core reads a cache line that the other core wrote several times
// more slowly than its own lines. Therefore all kernels divide the rows into two halves, always at
// the same row. With two threads, each half stays with its thread during a whole step. A sum over
// many rows is always computed as the sum of its halves, so that its bits do not depend on the
// number of threads.

// If there are at least this number of rows, kernels compute the halves as separate products.
inline constexpr int64_t kWorthHalves = 512;

// Calls f(half, first, count) for both halves of n rows. With two threads, the two calls run at the
// same time. OpenMP regions inside f then use one thread.
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
