#pragma once

#include <string>

#include "text/corpus.h"
#include "text/vocabulary.h"
#include "train/checkpoint.h"
#include "train/train_options.h"
#include "train/validation.h"

namespace fovea {

// The vocabularies and the encoded text of a run.
struct TrainData {
  Vocabulary source, target;
  Corpus train;
  HeldOut valid, test;
};

// Throws if a file that the options name cannot be read. The message names the setting and the
// folders that were searched. Reads at most the first line of each file and counts lines.
void check_files(const TrainOptions& options);

// Throws ExitCode::usage if training in this directory would overwrite a model that has no
// checkpoint to resume from or has another shape. Accepts a directory that does not exist.
void check_directory(const std::string& directory, const ModelConfig& model);

// The settings of a network that the values of its parameters depend on, as names and values. The
// sizes of the vocabularies are not among them.
RunIdentity network_settings(ModelConfig model);

// Loads the vocabularies that the options name. If there are none, loads those of the model
// directory, else of the model in train.from (not for examples). If there are none either, makes
// new ones from the training text. Then adds vocabulary.add. `model_directory` may be empty.
void load_vocabularies(TrainData& data, const TrainOptions& options,
                       const std::string& model_directory);

// Reads the text with the vocabularies of `data`. Throws ExitCode::data for bad text, and if no
// line is left for training, validation or testing.
void load_text(TrainData& data, const TrainOptions& options);

// Sets the sizes of the model that depend on the vocabularies. Throws ExitCode::data if the recipe
// has other sizes.
void fit_model(ModelConfig& model, const TrainData& data);

// Returns the properties that a run and the checkpoint it resumes from must have in common: the
// contents of text and vocabularies, the shape of the network, and the settings that determine the
// order of batches.
RunIdentity identity_of(const TrainOptions& options, const TrainData& data);

}  // namespace fovea
