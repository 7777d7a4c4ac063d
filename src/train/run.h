#pragma once

#include <cstdint>
#include <string>

#include "train/data.h"
#include "train/trainer.h"

namespace fovea {

// How far a run came.
struct RunEnd {
  Outcome outcome;
  int64_t updates = 0, parameters = 0;
};

// What translates lines for validation: beam and length penalty are those of `valid`; leaves off
// where the program is asked to stop.
TranslateLines validation_translator(const TrainData& data, const ValidOptions& valid);

// One run of a series that shares its text and vocabularies.
struct SeriesRun {
  TrainOptions options;   // complete, the model fitted to the vocabularies
  std::string settings;   // all of them, for recipe.yml
  std::string directory;  // made where it does not exist; a run that is there goes on
};

// Trains one model in its directory, which then holds what one of `fovea train` does. The test text
// is left to the caller. Throws as Trainer::run does, and Exit::files where another program works
// in the directory.
RunEnd run_in_series(const SeriesRun& run, const TrainData& data);

}  // namespace fovea
