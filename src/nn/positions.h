#pragma once

#include "tensor/tensor.h"

namespace fovea {

// Which sines and cosines stand where in a row of D entries, i = 0 … D/2 − 1:
//   interleaved  PE[pos, 2i] = sin(pos / 10000^(2i/D)), PE[pos, 2i+1] = cos(same)  (Vaswani 2017)
//   half         all sines, then all cosines
//   half_m1      as half, with frequencies 10000^(−i / (D/2 − 1))  (tensor2tensor, Marian)
enum class Waves { interleaved, half, half_m1 };

// Rows for the positions 0 … count − 1: [count, D]. D is even.
Tensor sinusoids(Waves waves, int64_t count, int64_t D, Type type, Device device = Cpu{});

// Such a table that is as long as the longest sentence so far: a model that allows long sentences
// costs nothing until one comes. Copies share the table; any thread may ask.
class SinusoidTable {
 public:
  SinusoidTable(Waves waves, int64_t D, Type type, Device device);
  Tensor rows(int64_t count) const;  // at least `count` rows

 private:
  struct Shared;
  std::shared_ptr<Shared> shared_;
};

}  // namespace fovea
