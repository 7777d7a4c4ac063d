#include "decode/scorer.h"

#include <algorithm>
#include <cmath>

#include "text/batch.h"

namespace fovea {
namespace {

// Returns log p of every target word of a batch, where p is the mean probability of the models.
std::vector<double> log_likelihoods(std::span<const Model* const> models, const PairBatch& batch) {
  const TrainingBatch pairs{{batch.source.ids, batch.source.offsets},
                            {batch.target_in.ids, batch.target_in.offsets},
                            batch.target_out.ids};
  std::vector<double> sum(batch.target_out.ids.size(), 0.0);
  for (const Model* model : models) {
    const BatchLoss loss = model->loss(pairs, 0);
    const std::vector<double> log_probs = loss.log_likelihood.values();
    if (models.size() == 1) return log_probs;
    for (size_t i = 0; i < sum.size(); ++i) sum[i] += std::exp(log_probs[i]);
  }
  for (double& p : sum) p = std::log(p / static_cast<double>(models.size()));
  return sum;
}

}  // namespace

std::vector<PairScore> score_pairs(std::span<const Model* const> models, const Corpus& pairs,
                                   int64_t batch_tokens) {
  std::vector<int64_t> lengths;
  for (int64_t i = 0; i < pairs.size(); ++i)
    lengths.push_back(std::max(pairs.source_length(i), pairs.target_length(i)));
  std::vector<PairScore> scores(lengths.size());
  const SentenceFrame& frame = models.front()->frame();
  const auto prefix = static_cast<int32_t>(frame.target_prefix.size());
  for (const auto& members : batches_by_length(lengths, {.tokens = batch_tokens})) {
    const PairBatch batch = gather(pairs, members, frame);
    const std::vector<double> log_probs = log_likelihoods(models, batch);
    for (size_t i = 0; i < members.size(); ++i) {
      PairScore& score = scores[members[i]];
      for (int32_t t = batch.target_out.offsets[i] + prefix; t < batch.target_out.offsets[i + 1];
           ++t) {
        score.log_probs.push_back(static_cast<float>(log_probs[t]));
        score.log_prob += log_probs[t];
      }
    }
  }
  return scores;
}

}  // namespace fovea
