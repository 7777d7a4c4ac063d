#pragma once

#include "ops/packing.h"

namespace fovea {

// c_t = f_t c_{t−1} + (1 − f_t) x_t for the words t of each sentence and each column, with c_0 = 0.
// f and x are [tokens, D]; f is between 0 and 1.
Tensor running_average(const Tensor& f, const Tensor& x, const SentenceOffsets& sentences);
// The same from plain operations, one word after another: the reference for tests.
Tensor running_average_reference(const Tensor& f, const Tensor& x,
                                 const SentenceOffsets& sentences);

// One step for each row: f_r c + (1 − f_r) x_r, where c is row previous[r] of states [capacity, D],
// or 0 if previous[r] is negative. There is no gradient: this is for decoding on the CPU.
Tensor average_step(const Tensor& f, const Tensor& x, const Tensor& states, const Tensor& previous);

}  // namespace fovea
