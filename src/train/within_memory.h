#pragma once

#include <cstdint>
#include <new>

#include "base/check.h"

namespace fovea {

// Calls attempt() until it does not run out of memory, and returns its result. After each failure,
// reduce(reason, tries) prepares an attempt that needs less memory; `tries` counts from 0. If
// reduce() returns false, the error is thrown again.
template <class Attempt, class Reduce>
auto within_memory(const Attempt& attempt, const Reduce& reduce) {
  for (int64_t tries = 0;; ++tries) {
    try {
      return attempt();
    } catch (const Error& error) {
      if (error.code() != ExitCode::memory || !reduce(error.what(), tries)) throw;
    } catch (const std::bad_alloc&) {
      if (!reduce("out of memory", tries)) throw;
    }
  }
}

}  // namespace fovea
