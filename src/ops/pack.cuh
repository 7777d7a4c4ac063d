#pragma once

#include <cstdint>

namespace fovea::kernel {

// kWide neighbouring numbers, read or written at once.
template <int kWide>
struct alignas(kWide * sizeof(float)) Pack {
  float at[kWide];
};

template <int kWide>
__device__ Pack<kWide> load(const float* from) {
  return *reinterpret_cast<const Pack<kWide>*>(from);
}

// Whether packs of four can start at all of these places.
template <class... Pointers>
bool at_fours(const Pointers*... places) {
  return (... && (reinterpret_cast<std::uintptr_t>(places) % sizeof(Pack<4>) == 0));
}

}  // namespace fovea::kernel
