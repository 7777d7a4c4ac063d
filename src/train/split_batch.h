#pragma once

#include <cstdint>
#include <vector>

#include "text/batch.h"

namespace fovea {

// Splits a batch into parts of at most `tokens` tokens on each side and keeps the order. A pair
// with more tokens becomes a part of its own. The gradient of a batch is the sum of the gradients
// of its parts.
//
// REQUIRES: the batch was gathered from the corpus.
std::vector<PairBatch> parts_of(const PairBatch& batch, const Corpus& corpus, int64_t tokens);

}  // namespace fovea
