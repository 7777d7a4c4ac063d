#include "train/validation.h"

#include <cmath>

#include "eval/bleu.h"
#include "eval/chrf.h"
#include "train/gradient.h"

namespace fovea {
namespace {

std::optional<Cost> total_cost(const Model& model, const Corpus& corpus, int64_t batch_tokens,
                               const std::function<bool()>& stop) {
  const BatchPlan plan(corpus, {.tokens = batch_tokens}, 0);
  Cost total;
  for (int64_t i = 0; i < plan.size(); ++i) {
    if (stop()) return {};
    total += cost_of(model, plan.batch(i));
  }
  return total;
}

}  // namespace

std::optional<std::vector<Metric>> measure(const Model& model, const HeldOut& text,
                                           const ValidOptions& options, int64_t batch_tokens,
                                           const TranslateLines& translate,
                                           const std::function<bool()>& stop) {
  const std::optional<Cost> cost = total_cost(model, text.corpus, batch_tokens, stop);
  if (!cost) return {};
  const double loss = cost->nll / static_cast<double>(cost->words);
  std::vector<Metric> values{{"loss", loss}, {"ppl", std::exp(loss)}};
  if (!options.wants("bleu") && !options.wants("chrf")) return values;
  const Lines lines = translate(model, text.sources);
  if (stop()) return {};
  if (options.wants("bleu")) {
    const BleuOptions how{.tokenize = options.tokenize, .lowercase = options.lowercase};
    values.push_back({"bleu", bleu(lines, text.references, how)});
  }
  if (options.wants("chrf")) {
    const ChrfOptions how{.lowercase = options.lowercase};
    values.push_back({"chrf", chrf(lines, text.references, how)});
  }
  return values;
}

}  // namespace fovea
