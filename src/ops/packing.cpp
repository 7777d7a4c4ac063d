#include "ops/packing.h"

#include <algorithm>

namespace fovea {

SentenceOffsets SentenceOffsets::of(std::span<const int32_t> offsets, Device device) {
  SentenceOffsets p;
  p.sentences = static_cast<int64_t>(offsets.size()) - 1;
  p.tokens = offsets.back();
  std::vector<int32_t> positions;
  positions.reserve(static_cast<size_t>(p.tokens));
  for (size_t b = 0; b + 1 < offsets.size(); ++b) {
    const int32_t length = offsets[b + 1] - offsets[b];
    for (int32_t i = 0; i < length; ++i) positions.push_back(i);
    p.longest = std::max<int64_t>(p.longest, length);
  }
  p.offsets = Tensor::of(offsets, device);
  p.positions = Tensor::of(positions, device);
  return p;
}

}  // namespace fovea
