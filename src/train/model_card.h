#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "train/train_options.h"
#include "train/training_data.h"
#include "train/training_metrics.h"

namespace fovea {

// The results of a finished run, from its metrics.
struct TrainingFigures {
  std::optional<MetricsLine> best;     // the measurement of the weights that became the model
  std::optional<MetricsLine> test;     // the last test
  int64_t update = 0, epoch = 0;       // of the last line
  std::optional<double> seconds = {};  // time of the last line, since 1970
};
TrainingFigures figures_of(const std::vector<MetricsLine>& log, const std::string& stop_metric);

// Returns "best ppl 4.3210 at update 3,900, test bleu 41.10, chrf 60.12", or "" if nothing was
// measured.
std::string summary_of(const TrainingFigures& figures, const std::string& stop_metric);

// The data of README.md in a model directory. The text has file names without their folders.
struct ModelCard {
  std::string name;
  const TrainOptions& options;
  const TrainData& data;
  int64_t parameters;
  TrainingFigures figures;
  std::string usage;  // commands that use the model, one per line
};
std::string card_text(const ModelCard& card);

// Returns a sentence for the example command: a short line of the validation or test text that
// needs no escapes between the double quotes of a shell. Returns "A sentence." if there is none.
std::string example_sentence(const TrainData& data);

// Writes DIRECTORY/README.md, but does not replace a file that a person wrote. If this fails, only
// logs a warning.
void write_card(const std::string& directory, const std::string& text);

}  // namespace fovea
