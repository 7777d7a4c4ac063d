#include "train/validation.h"

#include <algorithm>
#include <cmath>

#include "eval/bleu.h"
#include "eval/chrf.h"
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

// Returns the most probable first target word of each source.
std::vector<int32_t> first_words(const Model& model, const PairBatch& batch) {
  const auto state = model.start({batch.source.ids, batch.source.offsets});
  const std::vector<int32_t> begin(static_cast<size_t>(batch.source.sentences()), kBos);
  const Tensor scores = model.step(*state, begin);
  const std::vector<double> values = scores.values();
  std::vector<int32_t> best;
  for (auto row = values.begin(); row != values.end(); row += scores.cols())
    best.push_back(static_cast<int32_t>(std::max_element(row, row + scores.cols()) - row));
  return best;
}

std::optional<double> accuracy(const Model& model, const Corpus& corpus, int64_t batch_tokens,
                               const std::function<bool()>& stop) {
  const BatchPlan plan(corpus, {.tokens = batch_tokens}, 0);
  int64_t right = 0;
  for (int64_t i = 0; i < plan.size(); ++i) {
    if (stop()) return {};
    const PairBatch batch = plan.batch(i);
    const std::vector<int32_t> found = first_words(model, batch);
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
    const std::optional<double> right = accuracy(model, text.corpus, batch_tokens, stop);
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
