#pragma once

#include <string>

#include "text/corpus.h"
#include "text/vocabulary.h"
#include "train/checkpoint.h"
#include "train/options.h"
#include "train/validation.h"

namespace fovea {

// All text of a run, read and numbered.
struct TrainData {
  Vocabulary source, target;
  Corpus train;
  HeldOut valid, test;
};

// Throws, before anything costs time, where a file of text or a vocabulary that the options name
// cannot be read: which setting names it, and where its path starts.
void check_files(const TrainOptions& options);

// Throws Exit::usage where training in this directory would replace a model: one that has no
// checkpoint to go on from, or one of another shape. Without a directory all is well.
void check_directory(const std::string& directory, const ModelConfig& model);

// The vocabularies that the options name; else those of the model directory; else new ones made
// from the training text. An empty directory stands for none.
void load_vocabularies(TrainData& data, const TrainOptions& options,
                       const std::string& model_directory);

// Reads the text with the vocabularies of `data`. Throws Exit::data, also where nothing is left
// to train on.
void load_text(TrainData& data, const TrainOptions& options);

// Sets the sizes that follow from the vocabularies; Exit::data where the recipe says otherwise.
void fit_model(ModelConfig& model, const TrainData& data);

// What a run must have in common with the checkpoint it goes on from: the contents of text and
// vocabularies, the shape of the network and what decides the order of batches.
Identity identity_of(const TrainOptions& options, const TrainData& data);

}  // namespace fovea
