#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "eval/metric.h"
#include "models/model.h"
#include "text/corpus.h"
#include "train/train_options.h"
#include "train/training_metrics.h"

namespace fovea {

// Validation or test text: encoded for the loss, and as lines for translation.
struct HeldOut {
  Corpus corpus;
  Lines sources, references;

  bool empty() const { return corpus.size() == 0; }
};

// A function that returns one translation per source line, or fewer if a signal asked the program
// to stop. A batch has at most `most` source pieces.
using TranslateLines = std::function<Lines(const Model& model, const Lines& sources, int64_t most)>;

// Returns the metrics that `options` selects, in the order loss, ppl, accuracy, bleu, chrf.
// Accuracy is the percentage of pairs for which the model gives the first target word the highest
// probability of all words. For classification this word is the label. Returns nothing if `stop`
// becomes true during the measurement.
std::optional<std::vector<MetricValue>> measure(const Model& model, const HeldOut& text,
                                                const ValidOptions& options, int64_t batch_tokens,
                                                const TranslateLines& translate,
                                                const std::function<bool()>& stop);

}  // namespace fovea
