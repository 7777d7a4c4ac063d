#include "attention/attention_intervention.h"

#include <algorithm>
#include <cassert>

#include "ops/elementwise.h"

namespace fovea {
namespace {

constexpr double kExcluded = -1e30;  // added to the score of a masked word, so that exp(score) is 0

}  // namespace

// The mask acts before the softmax. So the unmasked words share the weight that the masked words
// would have, and hard attention chooses an unmasked word.
SourceMemory AttentionWithIntervention::remember(const Tensor& h,
                                                 const SentenceOffsets& sentences) const {
  SourceMemory memory = inner_.remember(h, sentences);
  if (intervention_.masked.empty()) return memory;
  const int64_t rows = sentences.sentences, columns = sentences.longest;
  assert(sentences.tokens == rows * columns);  // one sentence, or copies of one sentence
  std::vector<double> veto(static_cast<size_t>(rows * columns), 0);
  for (int64_t i = 0; i < rows; ++i)
    for (const int32_t word : intervention_.masked) veto.at(i * columns + word) = kExcluded;
  memory.veto = Tensor::of({rows, columns}, veto, h.type(), h.device());
  return memory;
}

// Applies the intervention to the weights `alpha` of step `step`, which counts from 0. Masked words
// can still have weight before this call. The reason: the mechanism ignores scores (window), or all
// words of its local window are masked.
std::vector<double> AttentionWithIntervention::intervened(std::vector<double> alpha,
                                                          int64_t columns, int64_t step) const {
  if (intervention_.silent) std::ranges::fill(alpha, 0.0);
  if (intervention_.silent) return alpha;
  for (auto row = alpha.begin(); row != alpha.end(); row += columns) {
    for (const int32_t word : intervention_.masked) row[word] = 0;
    for (const Intervention::Row& forced : intervention_.forced)
      if (forced.step == step) std::ranges::copy(forced.weights, row);
  }
  return alpha;
}

// For mechanisms with keeps_weight(): if all weights in a row of alpha are 0, gives weight 1 to the
// last unmasked word. (Without an intervention, such a mechanism gives weight 1 to the last word.)
void AttentionWithIntervention::fall_back(std::vector<double>& alpha, int64_t columns) const {
  int64_t last = columns - 1;
  while (std::ranges::find(intervention_.masked, last) != intervention_.masked.end()) --last;
  for (auto row = alpha.begin(); row != alpha.end(); row += columns)
    if (std::all_of(row, row + columns, [](double w) { return w == 0; })) row[last] = 1;
}

AttentionResult AttentionWithIntervention::attend(const AttentionQuery& query,
                                                  const SourceMemory& memory,
                                                  const AttentionState& previous) const {
  AttentionResult result = inner_.attend(query, memory, previous);
  const Tensor& original = result.weights;
  std::vector<double> values = intervened(original.values(), original.cols(), previous.steps);
  if (inner_.keeps_weight() && !intervention_.silent) fall_back(values, original.cols());
  const Tensor alpha = Tensor::of(original.shape(), values, original.type(), original.device());
  result.weights = alpha;
  const RaggedQueries look{memory.sentences, query.sentence};
  result.context =
      intervention_.silent
          ? Tensor::zeros(result.context.shape(), result.context.type(), result.context.device())
          : inner_.context(alpha, memory, look);
  result.now = inner_.reweighted(previous, result);
  return result;
}

}  // namespace fovea
