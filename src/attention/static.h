#pragma once

#include <vector>

#include "attention/attention.h"
#include "ops/focus.h"
#include "ops/recurrent.h"
#include "ops/shape.h"

namespace fovea {

// Which of an encoder's states sum up a sentence: →h of its last word and ←h of its first, or, of
// an encoder that reads forward only, h of its last word.
enum class Summary { both_ends, last_word };

// One query for the whole sentence, weights computed once: the decoder's form of static attention
// (Hermann et al.: Teaching Machines to Read and Comprehend, NIPS 2015, section 3.2, ask with the
// encoded question instead: attention/reader.h). The score compares vectors of the size of h.
class StaticAttention : public ScoredAttention {
 public:
  Summary what;

  StaticAttention(std::unique_ptr<Score> score, Summary what)
      : ScoredAttention(std::move(score)), what(what) {}

  Memory remember(const Tensor& h, const Packing& sentences) const override {
    Memory memory = ScoredAttention::remember(h, sentences);
    memory.summary = summary(h, sentences);
    return memory;
  }

  Attended attend(const Query& query, const Memory& memory, const Before& before) const override {
    Before now = before;
    ++now.steps;
    if (!before.context) {
      const Lookup look{memory.sentences, query.sentence};
      const Tensor u = rows_at(memory.summary, query.sentence);
      const Tensor e = scores(u, memory, look);                       // e_j = score(u, h_j)
      now.weights = softmax_within(e, whole(look, score().reach()));  // α = softmax(e)
      now.context = weighted_sum(now.weights, memory.h, look);        // c = Σ_j α_j h_j
    }
    return {.context = now.context, .weights = now.weights, .now = now};
  }

  void explain(const Query& query, const Memory& memory, const Before& before,
               const Attended& attended, Steps& steps) const override {
    const Tensor u = rows_at(memory.summary, query.sentence);
    ScoredAttention::explain({u, query.sentence}, memory, before, attended, steps);
    steps.all.front().formula = "s_t = u: the summary of the sentence is the query, at every step";
  }

  // u [sentences, D].
  Tensor summary(const Tensor& h, const Packing& sentences) const {
    std::vector<int32_t> first, last;
    for (const double begin : sentences.offsets.values()) {
      first.push_back(static_cast<int32_t>(begin));
      last.push_back(first.back() - 1);
    }
    first.pop_back();          // the end of the last sentence
    last.erase(last.begin());  // what stands before the first
    const Tensor to_last = Tensor::of(last, h.device()), to_first = Tensor::of(first, h.device());
    if (what == Summary::last_word) return rows_at(h, to_last);  // u = h_S
    const int64_t half = h.cols() / 2;
    return concat(rows_at(columns(h, 0, half), to_last),       // u = [→h_S ;
                  rows_at(columns(h, half, half), to_first));  //      ←h_1]
  }
};

}  // namespace fovea
