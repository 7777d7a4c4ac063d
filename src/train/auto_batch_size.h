#pragma once

#include <cstdint>
#include <string>

#include "tensor/device.h"
#include "text/corpus.h"
#include "train/train_options.h"

namespace fovea {

// Returns the largest batch.tokens for which an update of this model fits into the memory of its
// device. Finds it by making updates of a temporary model. Throws Error(ExitCode::memory) if even
// the smallest batches do not fit, Error(ExitCode::usage) if the device has no known memory limit.
int64_t token_budget(const TrainOptions& options, const Corpus& text, Device device);

// Returns the value of `batch.tokens: auto` for a run that trains in `directory`. A run that
// resumes keeps the value that it began with, because the result depends on the batches. A new run
// uses token_budget().
int64_t batch_tokens(const TrainOptions& options, const Corpus& text, const std::string& directory,
                     Device device);

// Returns the settings of a run as text with another value for batch.tokens.
std::string with_batch_tokens(const std::string& settings, int64_t tokens);

}  // namespace fovea
