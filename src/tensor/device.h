#pragma once

#include <variant>

namespace fovea {

// A device is a tag that kernels are specialised on. A build without CUDA has a variant
// without Cuda, so no code for it is ever asked for: there are no stubs and no other #ifdef.
struct Cpu {
  friend bool operator==(Cpu, Cpu) = default;
};

struct Cuda {
  int index = 0;
  friend bool operator==(Cuda, Cuda) = default;
};

#ifdef FOVEA_CUDA
using Device = std::variant<Cpu, Cuda>;
#else
using Device = std::variant<Cpu>;
#endif

}  // namespace fovea
