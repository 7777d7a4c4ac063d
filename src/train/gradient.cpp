#include "train/gradient.h"

#include <numeric>

#include "ops/dropout.h"
#include "ops/elementwise.h"
#include "tensor/tape.h"

namespace fovea {
namespace {

BatchLoss loss_of(const Model& model, const PairBatch& batch, double label_smoothing) {
  return model.loss({batch.source.ids, batch.source.offsets},
                    {batch.target_in.ids, batch.target_in.offsets}, batch.target_out.ids,
                    label_smoothing);
}

Cost read(const BatchLoss& result, const PairBatch& batch) {
  const std::vector<double> words = result.log_likelihood.values();
  return {.loss = result.loss.values().at(0),
          .nll = -std::accumulate(words.begin(), words.end(), 0.0),
          .words = batch.target_tokens,
          .sentences = batch.source.sentences()};
}

}  // namespace

Cost& Cost::operator+=(const Cost& other) {
  loss += other.loss;
  nll += other.nll;
  words += other.words;
  sentences += other.sentences;
  return *this;
}

Cost add_gradient(Model& model, const PairBatch& batch, double label_smoothing, DropoutKey key) {
  const DropoutScope dropout(key.seed, static_cast<uint32_t>(key.drawn));
  Tape tape;
  const BatchLoss result = loss_of(model, batch, label_smoothing);
  tape.backward(result.surrogate ? result.loss + result.surrogate : result.loss);
  return read(result, batch);
}

Cost cost_of(const Model& model, const PairBatch& batch) {
  return read(loss_of(model, batch, 0), batch);
}

}  // namespace fovea
