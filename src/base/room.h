#pragma once

#include <sys/mman.h>

#include <cstddef>

namespace fovea {

// Whether the host has `bytes` more to give: to be asked before libraries that do not survive
// without, such as oneDNN, which writes code for each new shape. Writable pages are asked for,
// because only such pages count everywhere.
inline bool system_has(std::size_t bytes) {
  void* const start =
      mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  return start != MAP_FAILED && munmap(start, bytes) == 0;
}

}  // namespace fovea
