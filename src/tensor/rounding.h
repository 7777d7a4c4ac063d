#pragma once

#include <cstdint>

#include "base/random.h"
#include "tensor/tensor.h"

namespace fovea {

// Note [Rounding]
// How far rounding moves a result cannot be told from its size: what is left of terms that cancel
// is small beside them, and rounding is not. It can be tried: while a Rounding lives, every number
// of every result of an operation, and of every gradient as it gathers, is changed by ±`unit`
// of its size, at random. What that does to a result of double precision is what one
// rounding of that unit at every turn would do to it.
class Rounding {
 public:
  Rounding(double unit, uint64_t seed);
  ~Rounding();
  Rounding(const Rounding&) = delete;
  Rounding& operator=(const Rounding&) = delete;

  // Changes x if a Rounding lives on this thread and x is of double precision.
  static void change(const Tensor& x);

 private:
  double unit_;
  Random random_;
};

}  // namespace fovea
