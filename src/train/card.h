#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "train/data.h"
#include "train/metrics.h"
#include "train/options.h"

namespace fovea {

// What a finished run came to, by its metrics.
struct Figures {
  std::optional<Metrics> best;         // the validation or average that became the model
  std::optional<Metrics> test;         // the last one
  int64_t update = 0, epoch = 0;       // the last ones
  std::optional<double> seconds = {};  // since 1970, of the last line
};
Figures figures_of(const std::vector<Metrics>& log, const std::string& stop_metric);

// "best ppl 4.3210 at update 3,900, test bleu 41.10, chrf 60.12"; empty where nothing was measured.
std::string summary_of(const Figures& figures, const std::string& stop_metric);

// README.md of a model directory, without the folders that files lay in.
struct Card {
  std::string name;
  const TrainOptions& options;
  const TrainData& data;
  int64_t parameters;
  Figures figures;
};
std::string card_text(const Card& card);

// One that the model should know: a short line of the validation or test text that a shell takes
// between quotes as it is; "A sentence." where there is none.
std::string example_sentence(const TrainData& data);

// Writes DIRECTORY/README.md unless one is there that somebody else wrote. A card that cannot be
// written is a warning.
void write_card(const std::string& directory, const std::string& text);

}  // namespace fovea
