#pragma once

#include <cstdint>

#include "base/random.h"
#include "tensor/tensor.h"

namespace fovea {

// Note [Rounding]
// The size of a result does not show how large its rounding error is: if large terms cancel, the
// result is small, but its rounding error is not. An experiment measures the error. While a
// RoundingNoise exists, every number that an operation computes changes at random by ±`unit` times
// its size. The same applies to gradients after each addition. The change of a final result in
// double precision then equals the effect of one rounding with that unit after each operation.
//
// Adds rounding noise to the operations of this thread until the object is destroyed.
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
