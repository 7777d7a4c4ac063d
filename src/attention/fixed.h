#pragma once

#include <vector>

#include "attention/attention.h"
#include "attention/static.h"
#include "ops/attention_window.h"
#include "ops/elementwise.h"
#include "ops/matmul.h"
#include "ops/shape.h"

namespace fovea {

// A mechanism without attention: its context vector is the same at every step, the summary of the
// source sentence. Cho et al.: Learning Phrase Representations using RNN Encoder-Decoder for
// Statistical Machine Translation, EMNLP 2014, sections 2.2 and A.1:
//
//   c = tanh(V h_S),  s_0 = tanh(V' c),  s_t = f(s_{t−1}, E y_{t−1}, c)
//
// Cho's encoder reads forward only (model.bidirectional: false). If the encoder is bidirectional, c
// is tanh(V [→h_S ; ←h_1]). The decoder is RecurrentModel with DecoderForm::bahdanau, where W_s is
// V'. It differs from Cho's decoder: the readout uses tanh instead of maxout, and the reset gate
// does not multiply the term of c.
//
// In terms of attention: the value of word j is v_j = tanh(V [→h_j ; ←h_1]), and c = v_S. So the
// last word S has weight 1.
class FixedContext : public Attention {
 public:
  SummaryStates what;
  Tensor V;  // [D, D]

  FixedContext(ParameterScope scope, int64_t D, SummaryStates what)
      : what(what), V(scope.declare("V", {D, D}, ParameterInit::glorot(D, D))) {}

  SourceMemory remember(const Tensor& h, const SentenceOffsets& sentences) const override {
    return {h, {}, sentences};
  }

  AttentionState start(const SourceMemory& memory, const Tensor& sentence) const override {
    const RaggedQueries look{memory.sentences, sentence};
    const ColumnRanges words = full_range(look);
    const Tensor last = range_from(words.high, 1, words).low;  // the column of the last word
    const Tensor alpha = one_hot(last, weights_like(memory, look));
    return {.tensors = {{"weights", alpha}, {"context", context(alpha, memory, look)}}};
  }

  AttentionResult attend(const AttentionQuery& query, const SourceMemory& memory,
                         const AttentionState& previous) const override {
    AttentionState now = previous["context"] ? previous : start(memory, query.sentence);
    now.steps = previous.steps + 1;
    const RaggedQueries look{memory.sentences, query.sentence};
    return {.context = now["context"],
            .weights = now["weights"],
            .now = now,
            .shown = {{"forward_end", look.lengths_as(memory.h.type(), look.columns())},
                      {"backward_end", look.lengths_as(memory.h.type(), 1)}}};
  }

  // Markers at the words where the forward and the backward reading of the encoder end.
  std::vector<NamedSeries> series() const override {
    std::vector<NamedSeries> ends{{"forward_end", "end of →h", NamedSeries::Kind::position}};
    if (what == SummaryStates::both_ends)
      ends.push_back({"backward_end", "end of ←h", NamedSeries::Kind::position});
    return ends;
  }

  // tanh(V [Σ_j α_j →h_j ; ←h_1]). If one word j has weight 1, this is v_j.
  Tensor context(const Tensor& alpha, const SourceMemory& memory,
                 const RaggedQueries& look) const override {
    const Tensor read = weighted_sum(alpha, memory.h, look);
    if (what == SummaryStates::last_word) return tanh(linear(read, V));  // tanh(V h_j)
    const Tensor first = one_hot(full_range(look).low, weights_like(memory, look));
    const int64_t half = V.cols() / 2;
    const Tensor u =
        concat(columns(read, 0, half), columns(weighted_sum(first, memory.h, look), half, half));
    return tanh(linear(u, V));  // tanh(V [→h_j ; ←h_1])
  }
  bool keeps_weight() const override { return true; }

  ContextNames context_names() const override {
    return {.value = "v_j",
            .values = what == SummaryStates::last_word
                          ? "v_j = tanh(V h_j), the summary of the words 1 to j"
                          : "v_j = tanh(V [→h_j ; ←h_1]), the summary of the words 1 to j"};
  }

 private:
  static Tensor weights_like(const SourceMemory& memory, const RaggedQueries& look) {
    return Tensor({look.queries(), look.columns()}, memory.h.type(), memory.h.device());
  }
};

}  // namespace fovea
