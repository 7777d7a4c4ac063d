#pragma once

#include <functional>
#include <optional>
#include <vector>

#include "attention/multi_head.h"
#include "models/config.h"
#include "nn/positions.h"
#include "ops/decoder_memory.h"
#include "ops/guide.h"

namespace fovea {

// Vaswani et al.: Attention Is All You Need, NIPS 2017; section 3.

// FFN(x) = f(x W_1 + b_1) W_2 + b_2, with f = max(0, ·) as published (section 3.3).
struct FeedForward {
  Affine W_1, W_2;
  Function f;
  double inner_dropout;

  FeedForward(Scope scope, const ModelConfig& c)
      : W_1(scope / "W_1", c.size, c.inner), W_2(scope / "W_2", c.inner, c.size), f(c.activation),
        inner_dropout(c.activation_dropout) {}
  Tensor operator()(const Tensor& x) const {
    const Dropout dropout = dropout_key(inner_dropout);
    if (f == Function::relu && !dropout.on()) return W_2(linear_relu(x, W_1.W, W_1.b));
    return W_2(apply(f, W_1(x), dropout));
  }
};

// A sub-layer with its residual connection and norm (section 3.1, 5.4):
//   post-norm, as published   LayerNorm(x + Dropout(Sublayer(x)))
//   pre-norm                  x + Dropout(Sublayer(LayerNorm(x)))
struct SubLayer {
  LayerNorm norm;
  NormPlace place;
  double dropout;

  SubLayer(Scope scope, const ModelConfig& c)
      : norm(scope, c.size), place(c.norm), dropout(c.dropout) {}
  template <class F>
  Tensor operator()(const Tensor& x, const F& f) const {
    if (place == NormPlace::post) return norm(x, f(x), dropout);
    return residual(x, f(norm(x)), dropout_key(dropout));
  }
};

struct EncoderLayer {
  MultiHeadAttention attend;
  FeedForward feed_forward;
  SubLayer add_1, add_2;

  EncoderLayer(Scope scope, const ModelConfig& c);
  Tensor operator()(const Tensor& x, const Packing& source) const;
};

// One head whose attention to the source is told where to look, and what that costs.
// Garg et al.: Jointly Learning to Align and Translate with Transformer Models, EMNLP 2019.
struct GuidedHead {
  int64_t layer, head;
  Guide guide;
  Tensor loss = {};  // set by look()

  // The head's attention when the attention of its layer asks with h.
  void look(const MultiHeadAttention& attend, const Tensor& h, const Packing& target,
            const Tensor& memory, const Packing& source);
};

struct DecoderLayer {
  MultiHeadAttention attend_self, attend_source;
  FeedForward feed_forward;
  SubLayer add_1, add_2, add_3;

  DecoderLayer(Scope scope, const ModelConfig& c);
  Tensor operator()(const Tensor& y, const Packing& target, const Tensor& memory,
                    const Packing& source, GuidedHead* guided = nullptr) const;
  // One word per row, those before it and the source remembered for layer `number`.
  Tensor step(const Tensor& y, int64_t number, DecoderMemory& memory) const;
};

// Word embeddings scaled by √D plus positions (sections 3.4, 3.5). Positions are learned (P),
// computed (waves) or neither.
struct Embedder {
  Tensor E;  // [V, D]
  Tensor P;  // [max length + 1, D] or absent
  std::optional<SinusoidTable> waves;
  double scale = 1, dropout = 0;

  // Rows for the places below `longest`, and more; absent where there are no positions.
  Tensor positions(int64_t longest) const { return waves ? waves->rows(longest) : P; }
  // ids and places are i32 [N]; every place is below `longest`.
  Tensor operator()(const Tensor& ids, const Tensor& places, int64_t longest) const;
  Tensor operator()(std::span<const int32_t> ids, const Tensor& places, int64_t longest) const {
    return (*this)(Tensor::of(ids, E.device()), places, longest);
  }
  Tensor operator()(std::span<const int32_t> ids, const Packing& sentences) const {
    return (*this)(ids, sentences.positions, sentences.longest);
  }
};

// Memories that no search uses now.
struct IdleMemories;
std::shared_ptr<IdleMemories> idle_memories();

class Transformer : public Model {
 public:
  // Declares the parameters; parameters().allocate() must follow.
  explicit Transformer(const ModelConfig& config, Type type = Type::f32, Device device = Cpu{});

  const ModelConfig& config() const { return config_; }
  void settle() const override;
  int64_t target_words() const override { return config_.target_words; }
  int64_t max_length() const override { return config_.max_length; }

  BatchLoss loss(const Tokens& source, const Tokens& target_in, std::span<const int32_t> target_out,
                 double label_smoothing) const override {
    return guided_loss(source, target_in, target_out, label_smoothing, {});
  }
  BatchLoss guided_loss(const Tokens& source, const Tokens& target_in,
                        std::span<const int32_t> target_out, double label_smoothing,
                        const Guidance& guidance) const override;
  std::unique_ptr<Prepared> prepare(const Lesson& lesson, Fill fill) const override;
  BatchLoss loss_of(const Prepared& lesson, double label_smoothing,
                    double guided_weight) const override;
  std::unique_ptr<DecoderState> start(const Tokens& source) const override;
  bool joins() const override;  // on the host
  void join(DecoderState& state, const Tokens& source) const override;
  Tensor step(DecoderState& state, std::span<const int32_t> words) const override;
  void reorder(DecoderState& state, std::span<const int32_t> parents) const override;
  bool steer(DecoderState& state, const Steering& rules) const override;
  const Steered& step_ahead(DecoderState& state, int64_t rows) const override;
  std::vector<std::vector<AttentionMap>> attention(const Tokens& source,
                                                   const Tokens& target_in) const override;
  Steps explain(const Tokens& source, const Tokens& target_in,
                const AttentionRow& row) const override;
  std::unique_ptr<Model> altered(const WhatIf& what) const override;

  // The two stacks on embedded words.
  Tensor encode(Tensor x, const Packing& source) const;
  Tensor decode(Tensor y, const Packing& target, const Tensor& memory, const Packing& source,
                GuidedHead* guided = nullptr) const;
  // Scores of all words: [tokens, target words].
  Tensor logits(const Tensor& y) const { return linear(y, W_out, b_out); }

 private:
  // What one layer's attention asks with: q [queries, D] and kv [words, 2D], or both as qkv
  // [words, 3D] where it is self-attention.
  struct Asked {
    const char* kind;
    int64_t layer;
    Tensor q, kv, qkv;
  };
  // Visits every attention of the pairs in the order in which they are computed.
  void each_attention(const Tokens& source, const Tokens& target_in,
                      const std::function<void(const Asked&)>& visit) const;
  DecoderMemory::Next next(const DecoderMemory& memory, std::span<const int32_t> words) const;
  std::vector<Tensor> source_kv(const Tokens& source) const;
  Tensor compute_step(const DecoderMemory::Rows& in, const Tensor& P, DecoderMemory& memory) const;
  Embedder embedder(const char* name, int64_t words, const Tensor& tied);

  ModelConfig config_;
  std::shared_ptr<IdleMemories> idle_;  // between two searches

 public:
  Embedder embed_source, embed_target;
  std::vector<EncoderLayer> encoder_layers;
  std::vector<DecoderLayer> decoder_layers;
  std::vector<LayerNorm> final_norms;  // none, or encoder's and decoder's
  Tensor W_out, b_out;
};

}  // namespace fovea
