#pragma once

#include <cstdint>

#include "base/random.h"
#include "tensor/tensor.h"

namespace fovea {

// Note [Rounding]
// The size of a result does not show how much rounding changes it: if terms cancel, the rest is
// small compared with them, but its rounding error is not. An experiment shows it. While a
// RoundingNoise exists, every number of every result of an operation, and of every gradient at each
// addition, changes by ±`unit` of its size, at random. The change of a result in double precision
// then equals the effect of one rounding of that unit after each operation.
//
// Adds rounding noise to the operations of this thread until its destructor.
class RoundingNoise {
 public:
  RoundingNoise(double unit, uint64_t seed);
  ~RoundingNoise();
  RoundingNoise(const RoundingNoise&) = delete;
  RoundingNoise& operator=(const RoundingNoise&) = delete;

  // Changes x if a RoundingNoise exists on this thread and x is in double precision.
  static void change(const Tensor& x);

 private:
  double unit_;
  Random random_;
};

}  // namespace fovea
