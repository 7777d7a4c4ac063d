#pragma once

#include <cstdint>
#include <string>

#include "text/corpus.h"
#include "train/options.h"

namespace fovea {

// What is hardly meant as it is, to be told before training spends time on it. Empty where there
// is nothing to say.

// One text on both sides: the same file, or files that begin with the same lines.
std::string doubt_of_files(const DataOptions& data);

// A text so small that the model will know it by heart.
std::string doubt_of_size(int64_t parameters, const Corpus& text);

}  // namespace fovea
