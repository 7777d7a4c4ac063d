#pragma once

#include <span>

#include "tensor/tensor.h"

namespace fovea {

// Where the sentences of a packed tensor [tokens, D] begin and end.
struct Packing {
  Tensor offsets;    // i32 [sentences + 1]
  Tensor positions;  // i32 [tokens]: 0, 1, 2, … within each sentence
  int64_t sentences = 0, tokens = 0, longest = 0;

  static Packing of(std::span<const int32_t> offsets, Device device = Cpu{});
};

}  // namespace fovea
