#include "train/gradient.h"

#include <numeric>

#include "ops/dropout.h"
#include "ops/elementwise.h"
#include "tensor/tape.h"

namespace fovea {
namespace {

BatchLoss loss_of(const Model& model, const PairBatch& batch, const LossOptions& options) {
  return model.loss(training_batch(batch, options), options.label_smoothing);
}

BatchCost read(const BatchLoss& result, const PairBatch& batch, const LossOptions& options) {
  const std::vector<double> words = result.log_likelihood.values();
  return cost_from(batch, options,
                   {.loss = result.loss.values().at(0),
                    .guided = result.guided ? result.guided.values().at(0) : 0,
                    .log_likelihood = words});
}

}  // namespace

BatchCost& BatchCost::operator+=(const BatchCost& other) {
  loss += other.loss;
  nll += other.nll;
  words += other.words;
  sentences += other.sentences;
  guided += other.guided;
  guided_words += other.guided_words;
  return *this;
}

TrainingBatch training_batch(const PairBatch& batch, const LossOptions& options) {
  TrainingBatch input{{batch.source.ids, batch.source.offsets},
                      {batch.target_in.ids, batch.target_in.offsets},
                      batch.target_out.ids};
  if (options.guided_weight != 0)
    input.guidance = {batch.links.offsets, batch.links.keys, options.guided_weight};
  return input;
}

BatchCost cost_from(const PairBatch& batch, const LossOptions& options,
                    const ComputedLoss& computed) {
  const auto words = computed.log_likelihood.first(batch.target_out.ids.size());
  BatchCost cost{.loss = computed.loss,
                 .nll = -std::accumulate(words.begin(), words.end(), 0.0),
                 .words = batch.target_tokens,
                 .sentences = batch.source.sentences()};
  if (!training_batch(batch, options).guidance) return cost;
  cost.guided = computed.guided;
  cost.guided_words = batch.links.linked_words();
  return cost;
}

BatchCost add_gradient(TrainedWeights weights, const PairBatch& batch, const LossOptions& options,
                       DropoutKey key) {
  const DropoutScope dropout(key.seed, static_cast<uint32_t>(key.drawn));
  weights.before_loss();
  Tape tape;
  const BatchLoss result = loss_of(weights.model(), batch, options);
  tape.backward(result.surrogate ? result.loss + result.surrogate : result.loss);
  weights.after_gradient();
  return read(result, batch, options);
}

BatchCost cost_of(const Model& model, const PairBatch& batch) {
  return read(loss_of(model, batch, {}), batch, {});
}

}  // namespace fovea
