#pragma once

#include <cstdint>
#include <string>

#include "text/corpus.h"
#include "train/options.h"

namespace fovea {

// Settings that are probably a mistake, to be reported before training spends time on them. Empty
// if there are none.

// One text on both sides, or validation or test text that is also training text: the same file, or
// files that begin with the same lines.
std::string doubt_of_files(const DataOptions& data);

// A text so small that the model will memorise it.
std::string doubt_of_size(int64_t parameters, const Corpus& text);

}  // namespace fovea
