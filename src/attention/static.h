#pragma once

#include <vector>

#include "attention/attention.h"
#include "ops/attention_window.h"
#include "ops/recurrent.h"
#include "ops/shape.h"

namespace fovea {

// Which encoder states summarize a sentence. both_ends: →h of the last word and ←h of the first
// word. last_word: h of the last word, for an encoder that reads only forward.
enum class SummaryStates { both_ends, last_word };

// Static attention for a decoder. The query u is the summary of the source sentence. So the weights
// are computed once and are the same at every step. (In attention/attentive_reader.h, by Hermann et
// al.: Teaching Machines to Read and Comprehend, NIPS 2015, section 3.2, the query is the encoded
// question.)
class StaticAttention : public ScoredAttention {
 public:
  SummaryStates what;

  StaticAttention(std::unique_ptr<ScoreFunction> score, SummaryStates what)
      : ScoredAttention(std::move(score)), what(what) {}

  SourceMemory remember(const Tensor& h, const SentenceOffsets& sentences) const override {
    SourceMemory memory = ScoredAttention::remember(h, sentences);
    memory.summary = summary(h, sentences);
    return memory;
  }

  AttentionResult attend(const AttentionQuery& query, const SourceMemory& memory,
                         const AttentionState& previous) const override {
    AttentionState now = previous;
    ++now.steps;
    if (!previous["context"]) {
      const RaggedQueries look{memory.sentences, query.sentence};
      const Tensor u = rows_at(memory.summary, query.sentence);
      const Tensor e = scores(u, memory, look);  // e_j = score(u, h_j)
      const Tensor alpha = softmax_within(e, full_range(look, score().reach()));  // softmax(e)
      const Tensor c = weighted_sum(alpha, memory.h, look);                       // Σ_j α_j h_j
      now.tensors = {{"weights", alpha}, {"context", c}};
    }
    return {.context = now["context"], .weights = now["weights"], .now = now};
  }

  void explain(const AttentionQuery& query, const SourceMemory& memory,
               const AttentionState& previous, const AttentionResult& result,
               ComputationSteps& steps) const override {
    const Tensor u = rows_at(memory.summary, query.sentence);
    ScoredAttention::explain({u, query.sentence}, memory, previous, result, steps);
    steps.all.front().formula = "s_t = u: the summary of the sentence is the query, at every step";
  }

  // The summaries u [sentences, D].
  Tensor summary(const Tensor& h, const SentenceOffsets& sentences) const {
    std::vector<int32_t> first, last;
    for (const double begin : sentences.offsets.values()) {
      first.push_back(static_cast<int32_t>(begin));
      last.push_back(first.back() - 1);
    }
    first.pop_back();          // the last offset begins no sentence
    last.erase(last.begin());  // the first offset ends no sentence
    const Tensor to_last = Tensor::of(last, h.device()), to_first = Tensor::of(first, h.device());
    if (what == SummaryStates::last_word) return rows_at(h, to_last);  // u = h_S
    const int64_t half = h.cols() / 2;
    return concat(rows_at(columns(h, 0, half), to_last),       // u = [→h_S ;
                  rows_at(columns(h, half, half), to_first));  //      ←h_1]
  }
};

}  // namespace fovea
