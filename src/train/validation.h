#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "eval/metric.h"
#include "models/model.h"
#include "text/corpus.h"
#include "train/metrics.h"
#include "train/options.h"

namespace fovea {

// Text that a model is measured on: as ids for the loss and as lines for translating.
struct HeldOut {
  Corpus corpus;
  Lines sources, references;

  bool empty() const { return corpus.size() == 0; }
};

// One line of translation per source line; fewer where the program was asked to stop. A batch has
// `most` pieces of the source at most.
using TranslateLines = std::function<Lines(const Model& model, const Lines& sources, int64_t most)>;

// The metrics that `options` wants, in the order loss, ppl, accuracy, bleu, chrf. Accuracy is the
// share, in percent, of pairs whose first target word is the one that the model finds most
// probable; of a text and its label, this is the label. Nothing where `stop` became
// true on the way: validation is then left for later.
std::optional<std::vector<Metric>> measure(const Model& model, const HeldOut& text,
                                           const ValidOptions& options, int64_t batch_tokens,
                                           const TranslateLines& translate,
                                           const std::function<bool()>& stop);

}  // namespace fovea
