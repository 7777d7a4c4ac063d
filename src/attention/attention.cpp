#include "attention/attention.h"

#include "ops/elementwise.h"
#include "ops/recurrent.h"
#include "ops/shape.h"

namespace fovea {
namespace {

template <class Part>
Before each(const Before& before, Part part) {
  auto some = [&](const Tensor& x) { return x ? part(x) : x; };
  return {before.steps, some(before.weights), some(before.covered), some(before.kappa),
          some(before.context)};
}

}  // namespace

Before first_rows(const Before& before, int64_t count) {
  return each(before, [&](const Tensor& x) { return x.rows() == count ? x : rows(x, 0, count); });
}

Before chosen_rows(const Before& before, const Tensor& rows) {
  return each(before, [&](const Tensor& x) { return rows_at(x, rows); });
}

void Attention::explain(const Query&, const Memory&, const Before&, const Attended& attended,
                        Steps& steps) const {
  steps.column("α_tj", "α_tj: the weights of this mechanism", attended.weights.values(),
               Step::Shown::share);
}

Tensor ScoredAttention::scores(const Tensor& s, const Memory& memory, const Lookup& look) const {
  const Tensor e = score()(s, memory, look);
  return memory.veto ? e + rows_at(memory.veto, look.sentence) : e;
}

void ScoredAttention::explain(const Query& query, const Memory& memory, const Before& before,
                              const Attended& attended, Steps& steps) const {
  steps.query("s_t", "s_t: the decoder state, which acts as the query", query.s.values());
  score().explain(query.s, memory, steps);
  const Row e = scores(query.s, memory, {memory.sentences, query.sentence}).values();
  steps.sums("e_tj", score().formula(), e, score().factors());
  explain_focus(e, before, attended, steps);
}

void ScoredAttention::explain_focus(const Row&, const Before&, const Attended& attended,
                                    Steps& steps) const {
  steps.column("α_tj", "α_tj = softmax of e_tj over the words: weights that sum to 1",
               attended.weights.values(), Step::Shown::share);
}

void explain_choice(const Attended& attended, Steps& steps) {
  steps.column("softmax", "softmax of e_tj over all words", attended.soft.values());
  steps.column("α_tj", "α_tj = 1 for the most likely word, 0 for all others",
               attended.weights.values(), Step::Shown::share);
}

}  // namespace fovea
