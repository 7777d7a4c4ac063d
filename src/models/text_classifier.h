#pragma once

#include <optional>

#include "attention/attentive_reader.h"
#include "models/label_predictor.h"
#include "models/model_config.h"

namespace fovea {

// A classifier that maps a text to one label, or a document and a question to one word.
// Hermann et al.: Teaching Machines to Read and Comprehend, NIPS 2015, section 3:
//   with attention     the Attentive Reader: g = tanh(W_rg r + W_ug u). r is the weighted sum of
//                      the states, and u is the encoded question. For a text without a question, u
//                      is its summary or a learned vector. If sentences are encoded separately, a
//                      row of P encodes the number of sentences that follow (like the temporal
//                      encoding of Sukhbaatar et al.: End-To-End Memory Networks, NIPS 2015, 4.1)
//   without attention  the Deep LSTM Reader: text </s> question </s> is read as one sequence, and
//                      g is its summary [→h_S ; ←h_1]
// p(label) = softmax(W_a g + b_a).
//
// A source is a text and </s>, or sentences and a question with </s> after each of them.
class TextClassifier : public Model, public LabelPredictor {
 public:
  static constexpr int64_t kFarthest = 64;  // number of rows of P

  // Declares the parameters. The caller must then call parameters().allocate().
  TextClassifier(const ModelShape& shape, const ReaderConfig& config,
                 ElementType type = ElementType::f32, Device device = Cpu{});

  BatchLoss loss(const TrainingBatch& batch, double label_smoothing) const override;
  LabelScores predict_labels(const TokenBatch& texts) const override;

 private:
  struct Answer {
    Tensor g;        // [sources, G]
    Tensor weights;  // as in LabelScores
  };
  Answer read(const TokenBatch& source) const;
  struct EncodedText {
    Tensor h;        // [words, D]
    Tensor summary;  // [sources, D]
  };
  EncodedText encode(const RecurrentStack& stack, const TokenBatch& text) const;
  Answer read_documents(const TokenBatch& source) const;

 public:
  Tensor E;
  RecurrentStack encoder;
  Tensor P;                                // [kFarthest, D]; k sentences follow: row k
  std::optional<RecurrentStack> question;  // the encoder of questions
  Tensor u;                                // [1, U]: the learned query
  std::optional<ReaderAttention> attend;
  Tensor W_a, b_a;  // [labels, G], [labels]; special words are not labels
};

}  // namespace fovea
