#include "train/gradient.h"

#include <numeric>

#include "ops/dropout.h"
#include "ops/elementwise.h"
#include "tensor/tape.h"

namespace fovea {
namespace {

BatchLoss loss_of(const Model& model, const PairBatch& batch, const LossOptions& options) {
  const Tokens source{batch.source.ids, batch.source.offsets};
  const Tokens target{batch.target_in.ids, batch.target_in.offsets};
  const Guidance guidance{batch.links.offsets, batch.links.keys, options.guided_weight};
  if (!guidance || guidance.weight == 0)
    return model.loss(source, target, batch.target_out.ids, options.label_smoothing);
  return model.guided_loss(source, target, batch.target_out.ids, options.label_smoothing, guidance);
}

Cost read(const BatchLoss& result, const PairBatch& batch) {
  const std::vector<double> words = result.log_likelihood.values();
  Cost cost{.loss = result.loss.values().at(0),
            .nll = -std::accumulate(words.begin(), words.end(), 0.0),
            .words = batch.target_tokens,
            .sentences = batch.source.sentences()};
  if (!result.guided) return cost;
  cost.guided = result.guided.values().at(0);
  cost.guided_words = batch.links.linked_words();
  return cost;
}

}  // namespace

Cost& Cost::operator+=(const Cost& other) {
  loss += other.loss;
  nll += other.nll;
  words += other.words;
  sentences += other.sentences;
  guided += other.guided;
  guided_words += other.guided_words;
  return *this;
}

Cost add_gradient(Model& model, const PairBatch& batch, const LossOptions& options,
                  DropoutKey key) {
  const DropoutScope dropout(key.seed, static_cast<uint32_t>(key.drawn));
  Tape tape;
  const BatchLoss result = loss_of(model, batch, options);
  tape.backward(result.surrogate ? result.loss + result.surrogate : result.loss);
  return read(result, batch);
}

Cost cost_of(const Model& model, const PairBatch& batch) {
  return read(loss_of(model, batch, {}), batch);
}

}  // namespace fovea
