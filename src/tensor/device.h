#pragma once

#include <string>
#include <variant>
#include <vector>

namespace fovea {

// A device is a tag type: overload resolution selects the version of a kernel by this type. In a
// build without CUDA, the variant Device has no type Cuda, so no code refers to CUDA kernels.
// Therefore there are no stubs and no other #ifdef.
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

// The devices that this program supports: "cpu", and "cuda" in a build with CUDA.
std::vector<std::string> device_names();
// Returns the device of this name. Throws ExitCode::usage if this program was built without it or
// the machine has none.
Device device_named(const std::string& name);

// A description such as "NVIDIA H200, 140 GiB". Throws ExitCode::usage if the machine has no such
// device.
std::string describe(Cpu);
std::string describe(Cuda device);

}  // namespace fovea
