#pragma once

#include <cstdint>
#include <string>

#include "text/corpus.h"
#include "train/train_options.h"

namespace fovea {

// Warnings before training about likely mistakes in the data. Both functions return "" if there is
// nothing to report.

// Reports a text that is both source and target, and validation or test text that is also training
// text. Two texts count as equal if they are one file, or if both files begin with the same lines.
std::string warning_about_files(const DataOptions& data);

// Reports a training text that is so small that the model will memorise it.
std::string warning_about_size(int64_t parameters, const Corpus& text);

}  // namespace fovea
