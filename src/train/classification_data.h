#pragma once

#include "train/training_data.h"

namespace fovea {

// Makes the vocabularies of words and labels. If vocabulary.source is set, the words come from that
// file, otherwise from the training examples. The labels always come from the training examples,
// the most frequent first.
void build_labelled_vocabularies(TrainData& data, const TrainOptions& options);

// Reads all examples with the vocabularies of `data`. Throws ExitCode::data for bad examples, and
// if no example is left for training, validation or testing.
void load_examples(TrainData& data, const TrainOptions& options);

}  // namespace fovea
