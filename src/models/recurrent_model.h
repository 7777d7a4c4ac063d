#pragma once

#include <memory>
#include <vector>

#include "attention/registry.h"
#include "models/decodable.h"
#include "models/explainable.h"
#include "models/model_config.h"
#include "models/replayable.h"

namespace fovea {

// The state that a decoder carries from one word to the next. Each row belongs to one sentence or
// hypothesis.
struct DecoderRows {
  std::vector<Tensor> states;  // per layer [rows, state width]
  Tensor fed;                  // h̃_{t−1} [rows, readout]; absent if there is no input feeding
  AttentionState attention;
};

// A recurrent encoder-decoder. The encoder computes the annotations h_j. The decoder has one of
// these forms:
//   bahdanau  α from s_{t−1}; s_t = f(s_{t−1}, [E y_{t−1}; c_t]);
//             readout tanh(W_r [s_t; E y_{t−1}; c_t])
//             (Bahdanau, Cho, Bengio: ICLR 2015, sections 3.1 and A.2.2; the readout uses tanh
//             instead of maxout, and s_t instead of s_{t−1})
//   luong     s_t = f(s_{t−1}, [E y_{t−1}; h̃_{t−1}]); α from s_t;
//             readout h̃_t = tanh(W_c [c_t; s_t])
//             (Luong, Pham, Manning: EMNLP 2015, sections 3 and 3.3)
//   without attention: s_t = f(s_{t−1}, E y_{t−1}); readout s_t
//             (Sutskever, Vinyals, Le: NIPS 2014)
class RecurrentModel : public Model, public Decodable, public Explainable, public Replayable {
 public:
  // Declares the parameters; parameters().allocate() must follow.
  RecurrentModel(const ModelShape& shape, const RecurrentConfig& config,
                 ElementType type = ElementType::f32, Device device = Cpu{});

  BatchLoss loss(const TrainingBatch& batch, double label_smoothing) const override;
  std::unique_ptr<PreparedBatch> prepare(const TrainingBatch& batch,
                                         BatchPadding padding) const override;
  BatchLoss loss_of(const PreparedBatch& batch, double label_smoothing,
                    double guided_weight) const override;
  std::unique_ptr<DecoderState> start(const TokenBatch& source) const override;
  Tensor step(DecoderState& state, std::span<const int32_t> words) const override;
  void reorder(DecoderState& state, std::span<const int32_t> parents) const override;
  std::vector<std::vector<AttentionMap>> attention(const TokenBatch& source,
                                                   const TokenBatch& target_in) const override;
  ComputationSteps explain(const TokenBatch& source, const TokenBatch& target_in,
                           const AttentionRow& row) const override;
  std::unique_ptr<Model> with_intervention(const WhatIf& intervention) const override;

  // The source words, in two orders: time-major for the encoder, and by sentence for the memory of
  // attention.
  struct Source {
    TimeMajor order;
    Tensor words;               // i32 [rows]
    Tensor sorted_positions;    // i32 [sentences]: index of each sentence in `order`
    SentenceOffsets sentences;  // the sentences in the memory of attention
    Tensor memory_rows;         // i32 [memory tokens]: row of each token in time-major order

    static Source of(const TokenBatch& sentences, BatchPadding padding, Device device);
  };
  // The encoder's output for the decoder. Row i of `states` belongs to source sentence i.
  struct EncoderOutput {
    SourceMemory memory;
    std::vector<Tensor> states;  // s_0 per layer; empty if s_0 is computed from the context
  };
  EncoderOutput encode(const Source& source) const;
  EncoderOutput encode(const TokenBatch& source) const {
    return encode(Source::of(source, BatchPadding::nothing, store_.device()));
  }
  // The first states s_0 of the decoder layers. `last` holds the last encoder state of each layer
  // and direction, in the order of RecurrentStack::layers.
  std::vector<Tensor> first_states(const std::vector<Tensor>& last) const;

  // The target words in time-major order. The index of the source sentence of each target sentence.
  struct Target {
    Tensor words;  // i32 [rows]
    TimeMajor order;
    Tensor sentence;  // i32 [sentences]: index of the source, sorted like order.order

    // Target sentences that belong to the source sentences with the same indices.
    static Target of(const TokenBatch& sentences, Device device = Cpu{});
  };
  struct DecoderOutput {
    Tensor readout;                         // [rows, readout] of all target words
    std::vector<AttentionResult> attended;  // one per time step
    std::vector<Tensor> s = {};             // states s_t of the top layer, one tensor per time step
  };
  DecoderOutput decode(const EncoderOutput& source, const Target& target) const;
  // The decoder's inputs and labels under teacher forcing, where the decoder reads the reference
  // words.
  struct ForcedTarget {
    Target target;
    Tensor read, labels;        // i32: rows of `target` to score, and their labels
    std::vector<int32_t> rows;  // `read` without padding (rows with label −1)

    static ForcedTarget of(const TrainingBatch& batch, BatchPadding padding, Device device);
  };
  // The loss of loss_of() and loss() for sources that are already encoded.
  BatchLoss loss_after(const EncoderOutput& source, const ForcedTarget& forced,
                       double label_smoothing) const;
  BatchLoss loss_after(const EncoderOutput& source, const TrainingBatch& batch,
                       double label_smoothing) const;

 private:
  // Creates a model that shares the parameter tensors of `other` but has another attention, which
  // may be absent. Its own parameters() is empty.
  RecurrentModel(const RecurrentModel& other, std::unique_ptr<Attention> attention);

  struct StepResult {
    DecoderRows rows;
    Tensor s, c;  // if there is no attention, c is absent
    AttentionResult attended;
  };
  StepResult advance(const Tensor& x, int64_t first, const DecoderRows& previous,
                     const SourceMemory& memory, const Tensor& sentence) const;
  std::vector<Tensor> advance_states(Tensor x, const std::vector<Tensor>& previous) const;
  DecoderOutput decode_at_once(const Tensor& y, const EncoderOutput& source,
                               const Target& target) const;
  Tensor readout(const Tensor& s, const Tensor& y, const Tensor& c) const;
  Tensor embed_words(const Tensor& E, const Tensor& ids) const;
  bool feeds_back() const;           // whether the next state depends on the attention
  bool starts_from_context() const;  // whether s_0 is computed from the context
  DecoderRows first(const EncoderOutput& source, const Tensor& sentence) const;
  Tensor surrogate(const DecoderOutput& decoded, const TimeMajor& order,
                   std::span<const int32_t> rows, const Tensor& scores) const;

  RecurrentConfig config_;

 public:
  Tensor E_source, E_target;
  RecurrentStack encoder;
  std::vector<Tensor> W_s;             // per decoder layer; empty if s_0 is the last encoder state
  std::vector<RecurrentCell> decoder;  // per layer
  Tensor C;  // multiplies c_t (bahdanau) or h̃_{t−1} (luong) for the first layer
  std::unique_ptr<Attention> attend;  // absent if the model has no attention
  Tensor W_r;                         // W_r (bahdanau) or W_c (luong) of the readout
  Tensor W_o, b_o;
  Tensor baseline;  // hard-sample: running mean of log p per word, which loss() updates
};

}  // namespace fovea
