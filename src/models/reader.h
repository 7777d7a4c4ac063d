#pragma once

#include <optional>
#include <vector>

#include "attention/reader.h"
#include "models/config.h"
#include "nn/recurrent.h"

namespace fovea {

// Reads a text and gives one label, or reads a document and a question and gives one word.
// Hermann et al.: Teaching Machines to Read and Comprehend, NIPS 2015, section 3:
//   with attention     the Attentive Reader: g = tanh(W_rg r + W_ug u), r what u asked for, and u
//                      the encoded question; of a text without one, its own summary or a vector
//                      that is learnt. Where sentences are read one by one, P tells how many follow
//                      (as the temporal encoding of Sukhbaatar et al.: End-To-End Memory Networks,
//                      NIPS 2015, section 4.1)
//   without attention  the Deep LSTM Reader: text </s> question </s> is read as one sequence, and
//                      g is its summary [→h_S ; ←h_1]
// p(label) = softmax(W_a g + b_a).
//
// To training and search the label is a sentence of one word: </s> follows it with certainty. A
// source is a text </s>, or sentences and then a question, </s> after each of them.
class Reader : public Model {
 public:
  static constexpr int64_t kFarthest = 64;  // sentences from the end that are told apart

  // Declares the parameters; parameters().allocate() must follow.
  explicit Reader(const ModelConfig& config, Type type = Type::f32, Device device = Cpu{});

  int64_t target_words() const override { return config_.target_words; }
  int64_t max_length() const override { return config_.max_length; }

  BatchLoss loss(const Tokens& source, const Tokens& target_in, std::span<const int32_t> target_out,
                 double label_smoothing) const override;
  std::unique_ptr<DecoderState> start(const Tokens& source) const override;
  Tensor step(DecoderState& state, std::span<const int32_t> words) const override;
  void reorder(DecoderState& state, std::span<const int32_t> parents) const override;
  // One map per source, a row per target word: all the same, for it asks once.
  std::vector<std::vector<AttentionMap>> attention(const Tokens& source,
                                                   const Tokens& target_in) const override;

  struct Answer {
    Tensor g;        // [sources, G]
    Tensor weights;  // [sources, longest text], 0 beyond a text's end; absent without attention
  };
  Answer read(const Tokens& source) const;

 private:
  struct Encoded {
    Tensor h;        // [words, D]
    Tensor summary;  // [sources, D]
  };
  Encoded encode(const RecurrentStack& stack, const Tokens& text) const;
  Answer read_documents(const Tokens& source) const;

  ModelConfig config_;

 public:
  Tensor E;
  RecurrentStack encoder;
  Tensor P;                                // [kFarthest, D]: row k where k sentences follow
  std::optional<RecurrentStack> question;  // its own encoder
  Tensor u;                                // [1, U]: the query that is learnt
  std::optional<ReaderAttention> attend;
  Tensor W_a, b_a;  // [labels, G]: special words are no labels
};

}  // namespace fovea
