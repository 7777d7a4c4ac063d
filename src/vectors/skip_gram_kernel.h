#pragma once

#include <cstdint>
#include <span>

#include "tensor/device.h"

namespace fovea::kernel {

// A training pair: a word, and a context word or a random word.
struct SkipGramPair {
  int32_t input;   // row of v, the word
  int32_t output;  // row o ≥ 0 of v′ for a context word, ~o for a random word
};

// The two tables of vectors; consecutive rows are `stride` floats apart.
// REQUIRES: stride is a multiple of kSkipGramLanes, and the padding of a row is 0.
inline constexpr int64_t kSkipGramLanes = 16;
struct SkipGramTables {
  float *input, *output;  // v, v′
  int64_t stride;
};

// A sequence of pairs that are trained in order, with the same learning rate.
struct SkipGramRun {
  std::span<const SkipGramPair> pairs;
  float rate;
};
// A sequence of runs that are trained in order.
struct SkipGramBlock {
  std::span<const SkipGramRun> runs;
};

// Makes one step of gradient descent for each pair of each block, in order, on
//   −log σ(s v′_o · v_i),  s = 1 for a context word, −1 for a random word.
// Returns the sum of these losses. The threads divide the blocks among themselves.
// REQUIRES: no row of a table is in two blocks.
double skip_gram(Cpu, const SkipGramTables& tables, std::span<const SkipGramBlock> blocks);

}  // namespace fovea::kernel
