#pragma once

#include <cstdint>

#include "models/model.h"
#include "text/corpus.h"
#include "train/options.h"

namespace fovea {

// What training will take, measured with a few real updates, which change the model a little.
struct Estimate {
  int64_t parameters = 0;
  int64_t batches = 0;        // of an epoch
  int64_t updates = 0;        // of an epoch
  double words = 0;           // target words per update
  double update_seconds = 0;  // without the first, which warms up
  double words_per_second = 0;
  double memory_bytes = 0;  // highest use, with the largest batch of an epoch
  double checkpoint_bytes = 0;
};

Estimate estimate(Model& model, const Corpus& text, const TrainOptions& options);

}  // namespace fovea
