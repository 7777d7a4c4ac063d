#pragma once

#include <cstdint>
#include <string>

#include "tensor/device.h"
#include "text/corpus.h"
#include "train/options.h"

namespace fovea {

// The largest batch.tokens with which an update of this model fits into the memory of its device,
// found by making updates of a model that is then thrown away. Throws Error(Exit::memory) where
// not even the smallest batches fit, Error(Exit::usage) where nobody knows how much memory there
// is.
int64_t token_budget(const TrainOptions& options, const Corpus& text, Device device);

// What batch.tokens: auto stands for in a run that trains in `directory`: what it did when the run
// began, for batches decide what is learnt, or else token_budget().
int64_t batch_tokens(const TrainOptions& options, const Corpus& text, const std::string& directory,
                     Device device);

// All settings of a run as text, with another number for batch.tokens.
std::string with_batch_tokens(const std::string& settings, int64_t tokens);

}  // namespace fovea
