#pragma once

#include "train/data.h"

namespace fovea {

// The words of the training examples and their labels as vocabularies. The words may be those of
// vocabulary.source; the labels always come from the examples, the most frequent first.
void build_labelled_vocabularies(TrainData& data, const TrainOptions& options);

// Reads all examples with the vocabularies of `data`. Throws Exit::data, also where nothing is left
// to train on or to measure with.
void load_examples(TrainData& data, const TrainOptions& options);

}  // namespace fovea
