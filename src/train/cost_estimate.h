#pragma once

#include <cstdint>

#include "models/model.h"
#include "text/corpus.h"
#include "train/train_options.h"

namespace fovea {

// The expected cost of a training.
struct CostEstimate {
  int64_t parameters = 0;
  int64_t batches = 0;        // per epoch
  int64_t updates = 0;        // per epoch
  double words = 0;           // target words per update
  double update_seconds = 0;  // after warm-up
  double words_per_second = 0;
  double memory_bytes = 0;  // peak, with the largest batch of an epoch
  double checkpoint_bytes = 0;
};

// Measures a few real updates, which change the model slightly.
CostEstimate estimate(Model& model, const Corpus& text, const TrainOptions& options);

}  // namespace fovea
