#pragma once

#include <sys/mman.h>

#include <cstddef>

namespace fovea {

// Returns whether the system can allocate `bytes` more. Call this before a call of a library that
// crashes if an allocation fails, such as oneDNN, which generates code for each new shape. The test
// maps writable pages, because only these count against every memory limit.
inline bool system_has(std::size_t bytes) {
  void* const start =
      mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  return start != MAP_FAILED && munmap(start, bytes) == 0;
}

}  // namespace fovea
