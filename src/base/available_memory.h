#pragma once

#include <sys/mman.h>

#include <cstddef>

namespace fovea {

// Returns whether the system can allocate `bytes` more bytes. Some libraries crash if an allocation
// fails, such as oneDNN, which generates code for each new shape. Call this function before them.
// It maps writable pages, because only such pages count against every memory limit.
inline bool system_has(std::size_t bytes) {
  void* const start =
      mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  return start != MAP_FAILED && munmap(start, bytes) == 0;
}

}  // namespace fovea
