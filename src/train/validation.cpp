#include "train/validation.h"

#include <algorithm>
#include <cassert>
#include <cmath>

#include "eval/bleu.h"
#include "eval/chrf.h"
#include "models/label_predictor.h"
#include "train/gradient.h"

namespace fovea {
namespace {

std::optional<BatchCost> total_cost(const Model& model, const Corpus& corpus, int64_t batch_tokens,
                                    const std::function<bool()>& stop) {
  const BatchPlan plan(corpus, {.tokens = batch_tokens}, 0);
  BatchCost total;
  for (int64_t i = 0; i < plan.size(); ++i) {
    if (stop()) return {};
    total += cost_of(model, plan.batch(i));
  }
  return total;
}

// Returns the most probable label of each source.
std::vector<int32_t> best_labels(const LabelPredictor& model, const PairBatch& batch) {
  const Tensor scores = model.predict_labels({batch.source.ids, batch.source.offsets}).logits;
  const std::vector<double> values = scores.values();
  std::vector<int32_t> best;
  for (auto row = values.begin(); row != values.end(); row += scores.cols()) {
    const auto label = std::max_element(row, row + scores.cols()) - row;
    best.push_back(kFirstLabel + static_cast<int32_t>(label));
  }
  return best;
}

std::optional<double> accuracy(const LabelPredictor& model, const Corpus& corpus,
                               int64_t batch_tokens, const std::function<bool()>& stop) {
  const BatchPlan plan(corpus, {.tokens = batch_tokens}, 0);
  int64_t right = 0;
  for (int64_t i = 0; i < plan.size(); ++i) {
    if (stop()) return {};
    const PairBatch batch = plan.batch(i);
    const std::vector<int32_t> found = best_labels(model, batch);
    for (size_t b = 0; b < found.size(); ++b)
      right += found[b] == batch.target_out[static_cast<int64_t>(b)].front();
  }
  return 100 * static_cast<double>(right) / static_cast<double>(corpus.size());
}

}  // namespace

std::optional<std::vector<MetricValue>> measure(const Model& model, const HeldOut& text,
                                                const ValidOptions& options, int64_t batch_tokens,
                                                const TranslateLines& translate,
                                                const std::function<bool()>& stop) {
  const std::optional<BatchCost> cost = total_cost(model, text.corpus, batch_tokens, stop);
  if (!cost) return {};
  const double loss = cost->nll / static_cast<double>(cost->words);
  std::vector<MetricValue> values{{"loss", loss}, {"ppl", std::exp(loss)}};
  if (options.wants("accuracy")) {
    const auto* const labels = model.as<LabelPredictor>();
    assert(labels);  // the options allow "accuracy" only for models with labels
    const std::optional<double> right = accuracy(*labels, text.corpus, batch_tokens, stop);
    if (!right) return {};
    values.push_back({"accuracy", *right});
  }
  if (!options.wants("bleu") && !options.wants("chrf")) return values;
  const Lines lines = translate(model, text.sources, batch_tokens);
  if (stop()) return {};
  if (options.wants("bleu")) {
    const BleuOptions how{.tokenize = resolved(options.tokenize, text.references),
                          .lowercase = options.lowercase};
    values.push_back({"bleu", bleu(lines, text.references, how)});
  }
  if (options.wants("chrf")) {
    const ChrfOptions how{.lowercase = options.lowercase};
    values.push_back({"chrf", chrf(lines, text.references, how)});
  }
  return values;
}

}  // namespace fovea
