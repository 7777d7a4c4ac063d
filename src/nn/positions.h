#pragma once

#include "tensor/tensor.h"

namespace fovea {

// The order of sines and cosines in a row of D entries, i = 0 … D/2 − 1:
//   interleaved  PE[pos, 2i] = sin(pos / 10000^(2i/D)), PE[pos, 2i+1] = cos(same)  (Vaswani 2017)
//   half         all sines, then all cosines
//   half_m1      like half, with frequencies 10000^(−i / (D/2 − 1))  (tensor2tensor, Marian)
enum class SinusoidLayout { interleaved, half, half_m1 };

// The rows of the positions 0 … count − 1: [count, D]. REQUIRES: D is even.
Tensor sinusoids(SinusoidLayout layout, int64_t count, int64_t D, ElementType type,
                 Device device = Cpu{});

// A table of sinusoids with as many rows as the longest sentence so far needs. So a model with a
// large maximum length needs little memory until a long sentence arrives. Copies share the table.
// Thread-safe.
class SinusoidTable {
 public:
  SinusoidTable(SinusoidLayout layout, int64_t D, ElementType type, Device device);
  Tensor rows(int64_t count) const;  // the first rows of the table, at least `count`

 private:
  struct Shared;
  std::shared_ptr<Shared> shared_;
};

}  // namespace fovea
