#pragma once

#include <cstdint>
#include <vector>

#include "text/batch.h"

namespace fovea {

// A batch as batches of at most `tokens` tokens of either side, in order; a pair that alone has
// more is a part of its own. The gradient of a batch is the sum of those of its parts.
//
// REQUIRES: the batch was gathered from the corpus.
std::vector<PairBatch> parts_of(const PairBatch& batch, const Corpus& corpus, int64_t tokens);

}  // namespace fovea
