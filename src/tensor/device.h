#pragma once

#include <string>
#include <variant>
#include <vector>

namespace fovea {

// A device is a tag that kernels are specialised on. A build without CUDA has a variant
// without Cuda, so no code for it is ever asked for: there are no stubs and no other #ifdef.
struct Cpu {
  static constexpr const char* kName = "cpu";
  friend bool operator==(Cpu, Cpu) = default;
};

struct Cuda {
  static constexpr const char* kName = "cuda";
  int index = 0;
  friend bool operator==(Cuda, Cuda) = default;
};

#ifdef FOVEA_CUDA
using Device = std::variant<Cpu, Cuda>;
#else
using Device = std::variant<Cpu>;
#endif

// What this program can compute on: "cpu", and "cuda" in a build with it.
std::vector<std::string> device_names();
// Exit::usage where this program was built without it, or where the machine has none such.
Device device_named(const std::string& name);

// In words: "NVIDIA H200, 140 GiB". Exit::usage where the machine has none such.
std::string describe(Cpu);
std::string describe(Cuda device);

}  // namespace fovea
