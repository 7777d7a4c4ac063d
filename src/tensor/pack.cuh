#pragma once

#include <cuda_bf16.h>

#include <cstdint>

#include "tensor/tensor.h"

namespace fovea::kernel {

// kWide adjacent numbers of a row. One instruction reads or writes a pack.
template <int kWide>
struct alignas(kWide * sizeof(float)) Pack {
  float at[kWide];
};

template <int kWide>
__device__ Pack<kWide> load(const float* from) {
  return *reinterpret_cast<const Pack<kWide>*>(from);
}
template <int kWide>
__device__ void store(float* to, const Pack<kWide>& pack) {
  *reinterpret_cast<Pack<kWide>*>(to) = pack;
}

// kWide bf16 numbers in memory. Kernels convert them to float for all computations.
template <int kWide>
struct alignas(kWide * sizeof(bf16)) Pairs {
  uint32_t at[kWide / 2];
};

template <int kWide>
__device__ Pack<kWide> load(const bf16* from) {
  Pack<kWide> pack;
  if constexpr (kWide == 1) {
    pack.at[0] = __uint_as_float(uint32_t{from->bits} << 16);
  } else {
    const Pairs<kWide> pairs = *reinterpret_cast<const Pairs<kWide>*>(from);
#pragma unroll
    for (int w = 0; w < kWide; w += 2) {
      pack.at[w] = __uint_as_float(pairs.at[w / 2] << 16);
      pack.at[w + 1] = __uint_as_float(pairs.at[w / 2] & 0xFFFF0000u);
    }
  }
  return pack;
}
template <int kWide>
__device__ void store(bf16* to, const Pack<kWide>& pack) {
  if constexpr (kWide == 1) {
    to->bits = __bfloat16_as_ushort(__float2bfloat16_rn(pack.at[0]));
  } else {
    Pairs<kWide> pairs;
#pragma unroll
    for (int w = 0; w < kWide; w += 2) {
      const __nv_bfloat162 both = __floats2bfloat162_rn(pack.at[w], pack.at[w + 1]);
      pairs.at[w / 2] = *reinterpret_cast<const uint32_t*>(&both);
    }
    *reinterpret_cast<Pairs<kWide>*>(to) = pairs;
  }
}

// Stores a pack at `to` or, for OutputMode::add, adds it to the numbers there.
template <int kWide, class T>
__device__ void fold_pack(T* to, OutputMode fold, Pack<kWide> pack) {
  if (fold == OutputMode::add) {
    const Pack<kWide> old = load<kWide>(to);
#pragma unroll
    for (int w = 0; w < kWide; ++w) pack.at[w] += old.at[w];
  }
  store(to, pack);
}

// Whether all these addresses are aligned for packs of kWide numbers. A null pointer counts as
// aligned.
template <int kWide, class... T>
bool at_packs(const T*... places) {
  return (... && (reinterpret_cast<std::uintptr_t>(places) % (kWide * sizeof(T)) == 0));
}
template <class... T>
bool at_fours(const T*... places) {
  return at_packs<4>(places...);
}

}  // namespace fovea::kernel
