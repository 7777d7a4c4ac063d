#pragma once

#include <cstdint>

#include "base/random.h"
#include "tensor/tensor.h"

namespace fovea {

// Note [Rounding]
// The size of a result does not show how large its rounding error is. If large terms cancel, the
// result is small, but its rounding error is not. So an experiment measures the error. While a
// RoundingNoise exists, every number that an operation computes changes at random by ±`unit` times
// its size. A gradient also changes after each addition to it. In double precision, the change of a
// final result then shows the effect of one rounding with this unit after each operation.
//
// While the object exists, adds rounding noise to the results of operations on this thread.
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
