#pragma once

#include <span>

#include "tensor/tensor.h"

namespace fovea {

// The boundaries of the sentences in a packed tensor [tokens, D], which has one sentence after
// another without padding.
struct SentenceOffsets {
  Tensor offsets;  // i32 [sentences + 1]: sentence b has the rows offsets[b] … offsets[b + 1] − 1
  Tensor positions;  // i32 [tokens]: 0, 1, 2, … within each sentence
  int64_t sentences = 0, tokens = 0, longest = 0;

  static SentenceOffsets of(std::span<const int32_t> offsets, Device device = Cpu{});
};

}  // namespace fovea
