#include "attention/attention.h"

#include "ops/elementwise.h"
#include "ops/recurrent.h"
#include "ops/shape.h"

namespace fovea {

AttentionState first_rows(const AttentionState& previous, int64_t count) {
  return {previous.steps, previous.tensors.selected([&](const Tensor& x) {
            return x.rows() == count ? x : rows(x, 0, count);
          })};
}

AttentionState chosen_rows(const AttentionState& previous, const Tensor& rows) {
  return {previous.steps,
          previous.tensors.selected([&](const Tensor& x) { return rows_at(x, rows); })};
}

void Attention::explain(const AttentionQuery&, const SourceMemory&, const AttentionState&,
                        const AttentionResult& result, ComputationSteps& steps) const {
  steps.column("α_tj", "α_tj: the weights of this mechanism", result.weights.values(),
               ComputationStep::Display::share);
}

Tensor ScoredAttention::scores(const Tensor& s, const SourceMemory& memory,
                               const RaggedQueries& look) const {
  const Tensor e = score()(s, memory, look);
  return memory.veto ? e + rows_at(memory.veto, look.sentence) : e;
}

void ScoredAttention::explain(const AttentionQuery& query, const SourceMemory& memory,
                              const AttentionState& previous, const AttentionResult& result,
                              ComputationSteps& steps) const {
  steps.query("s_t", "s_t: the decoder state, which acts as the query", query.s.values());
  score().explain(query.s, memory, steps);
  const DoubleRow e = scores(query.s, memory, {memory.sentences, query.sentence}).values();
  steps.sums("e_tj", score().formula(), e, score().factors());
  explain_focus(e, previous, result, steps);
}

void ScoredAttention::explain_focus(const DoubleRow&, const AttentionState&,
                                    const AttentionResult& result, ComputationSteps& steps) const {
  steps.column("α_tj", "α_tj = softmax of e_tj over the words: weights that sum to 1",
               result.weights.values(), ComputationStep::Display::share);
}

std::vector<NamedSeries> choice_series() {
  return {{"soft", "distribution", NamedSeries::Kind::distribution}};
}

void explain_choice(const AttentionResult& result, ComputationSteps& steps) {
  steps.column("softmax", "softmax of e_tj over all words", result.shown["soft"].values());
  steps.column("α_tj", "α_tj = 1 for the most likely word, 0 for all others",
               result.weights.values(), ComputationStep::Display::share);
}

}  // namespace fovea
