#pragma once

#include <functional>
#include <optional>
#include <vector>

#include "attention/multi_head.h"
#include "cache/kv_cache.h"
#include "models/decodable.h"
#include "models/explainable.h"
#include "models/model_config.h"
#include "models/replayable.h"
#include "nn/positions.h"
#include "nn/ssru.h"
#include "ops/alignment_loss.h"

namespace fovea {

// Vaswani et al.: Attention Is All You Need, NIPS 2017; section 3.

// The feed-forward layer FFN(x) = f(x W_1 + b_1) W_2 + b_2. In the paper, f is max(0, ·) (section
// 3.3). A gated layer is (f(x W_1 + b_1) ⊙ (x W_3 + b_3)) W_2 + b_2 (Shazeer: GLU Variants Improve
// Transformer, 2020).
struct FeedForward {
  Affine W_1, W_2;
  std::optional<Affine> W_3;  // only in a gated layer
  Function f;
  double inner_dropout;

  FeedForward(ParameterScope scope, const ModelShape& m, const TransformerConfig& c)
      : W_1(scope / "W_1", m.size, c.inner), W_2(scope / "W_2", c.inner, m.size), f(c.activation),
        inner_dropout(c.activation_dropout) {
    if (c.gated) W_3.emplace(scope / "W_3", m.size, c.inner);
  }
  Tensor operator()(const Tensor& x) const {
    const Dropout dropout = dropout_key(inner_dropout);
    if (W_3) return W_2(fovea::gated(f, W_1(x), (*W_3)(x), dropout));
    if (f == Function::relu && !dropout.on()) return W_2(linear_relu(x, W_1.W, W_1.b));
    return W_2(apply(f, W_1(x), dropout));
  }
};

// A sub-layer with its residual connection and norm (sections 3.1 and 5.4):
//   post-norm, as in the paper  LayerNorm(x + Dropout(Sublayer(x)))
//   pre-norm                    x + Dropout(Sublayer(LayerNorm(x)))
struct SubLayer {
  LayerNorm norm;
  NormPlace place;
  double dropout;

  SubLayer(ParameterScope scope, const ModelShape& m, const TransformerConfig& c)
      : norm(scope, m.size, c.norm_settings()), place(c.norm), dropout(m.dropout) {}
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

  EncoderLayer(ParameterScope scope, const ModelShape& m, const TransformerConfig& c);
  // distance_scores: see HeadsOptions; absent without relative positions.
  Tensor operator()(const Tensor& x, const SentenceOffsets& source,
                    const Tensor& distance_scores = {}) const;
};

// A cross-attention head that is trained on alignments, and its alignment loss.
// Garg et al.: Jointly Learning to Align and Translate with Transformer Models, EMNLP 2019.
struct GuidedHead {
  int64_t layer, head;
  AlignmentTargets guide;
  Tensor loss = {};  // set by compute_loss()

  // Computes `loss`. `attend` is the cross-attention of `layer`, h is the input of its query
  // projection, and `memory` is the encoder's output.
  void compute_loss(const MultiHeadAttention& attend, const Tensor& h,
                    const SentenceOffsets& target, const Tensor& memory,
                    const SentenceOffsets& source);
};

// A decoder layer reads the earlier target words by self-attention or by a recurrent unit.
struct DecoderLayer {
  std::optional<MultiHeadAttention> attend_self;
  std::optional<SimpleRecurrentUnit> recur;
  MultiHeadAttention attend_source;
  FeedForward feed_forward;
  SubLayer add_1, add_2, add_3;

  struct Options {
    Tensor distance_scores = {};  // see HeadsOptions; absent without relative positions
    GuidedHead* guided = nullptr;
  };
  DecoderLayer(ParameterScope scope, const ModelShape& m, const TransformerConfig& c);
  Tensor operator()(const Tensor& y, const SentenceOffsets& target, const Tensor& memory,
                    const SentenceOffsets& source) const {
    return (*this)(y, target, memory, source, Options{});
  }
  Tensor operator()(const Tensor& y, const SentenceOffsets& target, const Tensor& memory,
                    const SentenceOffsets& source, const Options& options) const;
  // The first sub-layer, which reads the target words up to each word.
  Tensor read_words(const Tensor& y, const SentenceOffsets& target,
                    const Tensor& distance_scores) const;
  // One decoding step with one word per row. `number` is this layer's index. `memory` holds the
  // keys and values, or the recurrent states, of the earlier words, and those of the source.
  Tensor step(const Tensor& y, int64_t number, const Tensor& distance_scores,
              DecoderMemory& memory) const;
};

// The embedding layer: word embeddings scaled by √D, plus position vectors (sections 3.4, 3.5). The
// position vectors are learned (P) or sinusoidal (waves), or absent. A norm may follow (Lewis et
// al.: BART, ACL 2020).
struct WordEmbedder {
  Tensor E;  // [V, D]
  Tensor P;  // [max length + 1, D] or absent
  std::optional<GrowingTable> waves;
  double scale = 1, dropout = 0;
  int64_t first_position = 0;  // the row of `waves` for the first position
  std::optional<LayerNorm> norm;

  // The position vectors: at least `longest` rows. If the model has no positions, absent.
  Tensor positions(int64_t longest) const;
  // Embeds ids; row position_ids[i] of `vectors`, a result of positions(), is added to word i.
  Tensor embed_at(const Tensor& ids, const Tensor& position_ids, const Tensor& vectors) const;
  // ids and position_ids are i32 [N]; every position is below `longest`.
  Tensor operator()(const Tensor& ids, const Tensor& position_ids, int64_t longest) const {
    return embed_at(ids, position_ids, positions(longest));
  }
  Tensor operator()(std::span<const int32_t> ids, const Tensor& position_ids,
                    int64_t longest) const {
    return (*this)(Tensor::of(ids, E.device()), position_ids, longest);
  }
  Tensor operator()(std::span<const int32_t> ids, const SentenceOffsets& sentences) const {
    return (*this)(ids, sentences.positions, sentences.longest);
  }
};

// The pool of decoder memories (key/value caches) that no search uses at present. Thread-safe.
struct IdleMemories;
std::shared_ptr<IdleMemories> idle_memories();

// The Transformer. Several threads may search with one model. declare_model() creates the derived
// class for the device, which adds a decoding interface.
class Transformer : public Model, public Decodable, public Explainable, public Replayable {
 public:
  // Declares the parameters. The caller must then call parameters().allocate().
  Transformer(const ModelShape& shape, const TransformerConfig& config,
              ElementType type = ElementType::f32, Device device = Cpu{});

  const TransformerConfig& config() const { return config_; }
  void freeze_for_inference() const override;

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

  // The encoder stack and the decoder stack. They read embedded words.
  Tensor encode(Tensor x, const SentenceOffsets& source) const;
  Tensor decode(Tensor y, const SentenceOffsets& target, const Tensor& memory,
                const SentenceOffsets& source, GuidedHead* guided = nullptr) const;
  // The logits of the next word at all target words: [tokens, target words].
  Tensor logits(const Tensor& y) const { return linear(y, W_out, b_out); }

 protected:
  DecoderMemory::Next next(const DecoderMemory& memory, std::span<const int32_t> words) const;
  // For each decoder layer, the keys and values of the source for its cross-attention: [source
  // tokens, 2A].
  std::vector<Tensor> source_kv(const TokenBatch& source) const;
  // `constant` is that of next(): position vectors, or the buckets of relative positions.
  Tensor compute_step(const DecoderMemory::Rows& in, const Tensor& constant,
                      DecoderMemory& memory) const;

 private:
  // The projections of one attention layer, with A = heads · d_k. Cross-attention has q [queries,
  // A] and kv [words, 2A], self-attention has qkv [words, 3A]. The tensors of the other kind are
  // absent.
  struct AttentionProjections {
    const char* kind;
    int64_t layer;
    Tensor q, kv, qkv;
    Tensor distance_scores = {};  // see HeadsOptions
  };
  // Calls `visit` for each attention layer, in the order in which the model computes them.
  void each_attention(const TokenBatch& source, const TokenBatch& target_in,
                      const std::function<void(const AttentionProjections&)>& visit) const;
  WordEmbedder embedder(const char* name, int64_t words, const Tensor& tied);

  TransformerConfig config_;
  std::shared_ptr<IdleMemories> idle_;  // decoder memories for later searches

 public:
  WordEmbedder embed_source, embed_target;
  std::optional<RelativePositions> encoder_distances, decoder_distances;
  std::vector<EncoderLayer> encoder_layers;
  std::vector<DecoderLayer> decoder_layers;
  std::vector<LayerNorm> final_norms;  // empty, or the norms after the encoder and decoder
  Tensor W_out, b_out;
};

// A Transformer on the CPU.
class HostTransformer : public Transformer, public Extendable {
 public:
  using Transformer::Transformer;
  void extend(DecoderState& state, const TokenBatch& source) const override;
};

// A Transformer on a GPU.
class DeviceTransformer : public Transformer, public DeviceDecodable {
 public:
  using Transformer::Transformer;
  void start_device_search(DecoderState& state, const BeamRules& rules) const override;
  const BeamStepResult& device_step(DecoderState& state, int64_t rows) const override;
};

}  // namespace fovea
