#pragma once

#include <cstdint>
#include <span>

#include "tensor/device.h"

namespace fovea::kernel {

// A word and one that stood near it, or one drawn at random.
struct SkipGramPair {
  int32_t input;   // row of v, the word
  int32_t output;  // row o ≥ 0 of v′ for a word that stood near, ~o for a random one
};

// Rows of the two tables follow each other at `stride` floats.
// REQUIRES: stride is a multiple of kSkipGramLanes, and what a row has beyond the vector is 0.
inline constexpr int64_t kSkipGramLanes = 16;
struct SkipGramTables {
  float *input, *output;  // v, v′
  int64_t stride;
};

// Pairs to be learnt one after the other.
struct SkipGramRun {
  std::span<const SkipGramPair> pairs;
  float rate;  // of learning
};
struct SkipGramBlock {
  std::span<const SkipGramRun> runs;
};

// One step of gradient descent for each pair of each block, in order, on
//   −log σ(s v′_o · v_i),  s = 1 for a word that stood near, −1 for a random one;
// returns the sum of these losses. Threads take blocks.
// REQUIRES: no row belongs to two blocks.
double skip_gram(Cpu, const SkipGramTables& tables, std::span<const SkipGramBlock> blocks);

}  // namespace fovea::kernel
