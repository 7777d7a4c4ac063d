#include "decode/batch_decoder.h"

#include <algorithm>

#include "decode/model_capabilities.h"
#include "ops/topk.h"

namespace fovea {

bool BatchDecoder::extendable() const {
  return std::ranges::all_of(models_,
                             [](const Model* model) { return model->as<Extendable>() != nullptr; });
}

void BatchDecoder::start(const TokenBatch& source) {
  clear();
  for (const Model* model : models_) {
    decodables_.push_back(&decodable(*model));
    states_.push_back(decodables_.back()->start(source));
  }
  rows_ = source.sentences();
}

void BatchDecoder::extend(const TokenBatch& source) {
  for (size_t i = 0; i < models_.size(); ++i)
    models_[i]->as<Extendable>()->extend(*states_[i], source);
  rows_ += source.sentences();
}

void BatchDecoder::clear() {
  decodables_.clear();
  states_.clear();
  rows_ = 0;
}

Tensor BatchDecoder::step(std::span<const int32_t> words) {
  std::vector<Tensor> scores;
  for (size_t i = 0; i < states_.size(); ++i)
    scores.push_back(decodables_[i]->step(*states_[i], words));
  return ensemble() ? mean_probabilities(scores) : scores.front();
}

void BatchDecoder::reorder(std::span<const int32_t> parents) {
  bool same = static_cast<int64_t>(parents.size()) == rows_;
  for (size_t i = 0; same && i < parents.size(); ++i) same = parents[i] == static_cast<int32_t>(i);
  if (same) return;
  for (size_t i = 0; i < states_.size(); ++i) decodables_[i]->reorder(*states_[i], parents);
  rows_ = static_cast<int64_t>(parents.size());
}

}  // namespace fovea
