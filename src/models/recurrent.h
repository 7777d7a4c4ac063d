#pragma once

#include <memory>
#include <vector>

#include "attention/registry.h"
#include "models/config.h"
#include "nn/recurrent.h"

namespace fovea {

// What a decoder carries from one word to the next; row i is one sentence or hypothesis.
struct DecoderRows {
  std::vector<Tensor> states;  // per layer [rows, state width]
  Tensor fed;                  // h̃_{t−1} [rows, readout]: input feeding only
  Before before;
};

// Recurrent encoder-decoders. The encoder gives annotations h_j; the decoder is
//   bahdanau  α from s_{t−1}; s_t = f(s_{t−1}, [E y_{t−1}; c_t]); tanh(W_r [s_t; E y_{t−1}; c_t])
//             (Bahdanau, Cho, Bengio: ICLR 2015, sections 3.1 and A.2.2; the readout has tanh for
//             maxout and s_t for s_{t−1})
//   luong     s_t = f(s_{t−1}, [E y_{t−1}; h̃_{t−1}]); α from s_t; h̃_t = tanh(W_c [c_t; s_t])
//             (Luong, Pham, Manning: EMNLP 2015, sections 3 and 3.3)
//   without attention s_t = f(s_{t−1}, E y_{t−1}) is read out as it is
//             (Sutskever, Vinyals, Le: NIPS 2014)
class RecurrentModel : public Model {
 public:
  // Declares the parameters; parameters().allocate() must follow.
  explicit RecurrentModel(const ModelConfig& config, Type type = Type::f32, Device device = Cpu{});

  int64_t target_words() const override { return config_.target_words; }
  int64_t max_length() const override { return config_.max_length; }

  BatchLoss loss(const Tokens& source, const Tokens& target_in, std::span<const int32_t> target_out,
                 double label_smoothing) const override;
  std::unique_ptr<Prepared> prepare(const Lesson& lesson, Fill fill) const override;
  BatchLoss loss_of(const Prepared& lesson, double label_smoothing,
                    double guided_weight) const override;
  std::unique_ptr<DecoderState> start(const Tokens& source) const override;
  Tensor step(DecoderState& state, std::span<const int32_t> words) const override;
  void reorder(DecoderState& state, std::span<const int32_t> parents) const override;
  std::vector<std::vector<AttentionMap>> attention(const Tokens& source,
                                                   const Tokens& target_in) const override;
  Steps explain(const Tokens& source, const Tokens& target_in,
                const AttentionRow& row) const override;
  std::unique_ptr<Model> altered(const WhatIf& what) const override;

  // The source words in time-major order, and how they are remembered: one sentence after another.
  struct Source {
    TimeMajor order;
    Tensor words;       // i32 [rows]
    Tensor places;      // i32 [sentences]: where each stands
    Packing sentences;  // of what is remembered
    Tensor remembered;  // i32 [tokens of these]: the row of each

    static Source of(const Tokens& sentences, Fill fill, Device device);
  };
  // What the decoder knows of its sources; rows are sentences.
  struct Encoded {
    Memory memory;
    std::vector<Tensor> states;  // the decoder's first ones, per layer
  };
  Encoded encode(const Source& source) const;
  Encoded encode(const Tokens& source) const {
    return encode(Source::of(source, Fill::nothing, store_.device()));
  }
  // s_0 of each decoder layer, from the encoder's last states of each layer and direction.
  std::vector<Tensor> first_states(const std::vector<Tensor>& last) const;

  // The target words in time-major order, and which source sentence each place is to translate.
  struct Target {
    Tensor words;  // i32 [rows]
    TimeMajor order;
    Tensor sentence;  // i32 [places]

    // Sentence i translates source i.
    static Target of(const Tokens& sentences, Device device = Cpu{});
  };
  struct Decoded {
    Tensor readout;                  // of every word, [rows, readout]
    std::vector<Attended> attended;  // of every time
    std::vector<Tensor> s = {};      // the last layer's states, of all times in order
  };
  Decoded decode(const Encoded& source, const Target& target) const;
  // What the decoder reads under teacher forcing, and what it is to say.
  struct Taught {
    Target target;
    Tensor read, labels;  // i32: rows of the target and their words, −1 for those of padding
    std::vector<int32_t> rows;  // `read` without padding

    static Taught of(const Lesson& lesson, Fill fill, Device device);
  };
  // loss_of() and loss() of sources that were read already.
  BatchLoss loss_after(const Encoded& source, const Taught& taught, double label_smoothing) const;
  BatchLoss loss_after(const Encoded& source, const Tokens& target_in,
                       std::span<const int32_t> target_out, double label_smoothing) const;

 private:
  // The same parameters with another attention, which may be absent; parameters() is empty.
  RecurrentModel(const RecurrentModel& other, std::unique_ptr<Attention> attention);

  struct Stepped {
    DecoderRows rows;
    Tensor s, c;  // c is absent without attention
    Attended attended;
  };
  Stepped advance(const Tensor& x, int64_t first, const DecoderRows& before, const Memory& memory,
                  const Tensor& sentence) const;
  std::vector<Tensor> advance_states(Tensor x, const std::vector<Tensor>& before) const;
  Decoded decode_at_once(const Tensor& y, const Encoded& source, const Target& target) const;
  Tensor readout(const Tensor& s, const Tensor& y, const Tensor& c) const;
  Tensor embed_words(const Tensor& E, const Tensor& ids) const;
  bool feeds_back() const;  // what is attended to takes part in the next state
  DecoderRows first(const Encoded& source, const Tensor& sentence) const;
  Tensor surrogate(const Decoded& decoded, const TimeMajor& order, std::span<const int32_t> rows,
                   const Tensor& scores) const;

  ModelConfig config_;

 public:
  Tensor E_source, E_target;
  RecurrentStack encoder;
  std::vector<Tensor> W_s;             // per decoder layer; none where states are taken as they are
  std::vector<RecurrentCell> decoder;  // per layer
  Tensor C;  // from c_t (bahdanau) or h̃_{t−1} (luong) to the first layer
  std::unique_ptr<Attention> attend;  // absent: without attention
  Tensor W_r;                         // W_r (bahdanau) or W_c (luong)
  Tensor W_o, b_o;
  Tensor baseline;  // hard-sample: mean log p of a word so far; moved by loss(), not by gradients
};

}  // namespace fovea
