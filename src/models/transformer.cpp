#include "models/transformer.h"

#include <cassert>
#include <cmath>

#include "ops/cross_entropy.h"
#include "ops/embedding.h"
#include "ops/shape.h"
#include "tensor/tape.h"

namespace fovea {

namespace {

MultiHeadAttention::Shape attention_shape(const ModelShape& m, const TransformerConfig& c) {
  return {m.size, c.heads, c.attention_dropout, c.head_size};
}

}  // namespace

EncoderLayer::EncoderLayer(ParameterScope scope, const ModelShape& m, const TransformerConfig& c)
    : attend(scope / "attend", attention_shape(m, c)), feed_forward(scope / "feed_forward", m, c),
      add_1(scope / "norm_1", m, c), add_2(scope / "norm_2", m, c) {}

Tensor EncoderLayer::operator()(const Tensor& x, const SentenceOffsets& source,
                                const Tensor& distance_scores) const {
  const Tensor a = add_1(
      x, [&](const Tensor& h) { return attend(h, source, AttentionMask::none, distance_scores); });
  return add_2(a, feed_forward);
}

namespace {

std::optional<MultiHeadAttention> self_attention_of(const ParameterScope& scope,
                                                    const ModelShape& m,
                                                    const TransformerConfig& c) {
  if (c.recurrent_decoder()) return std::nullopt;
  return MultiHeadAttention(scope / "attend_self", attention_shape(m, c));
}
std::optional<SimpleRecurrentUnit> recurrent_unit(const ParameterScope& scope, const ModelShape& m,
                                                  const TransformerConfig& c) {
  if (!c.recurrent_decoder()) return std::nullopt;
  return SimpleRecurrentUnit(scope / "ssru", m.size);
}

}  // namespace

DecoderLayer::DecoderLayer(ParameterScope scope, const ModelShape& m, const TransformerConfig& c)
    : attend_self(self_attention_of(scope, m, c)), recur(recurrent_unit(scope, m, c)),
      attend_source(scope / "attend_source", attention_shape(m, c)),
      feed_forward(scope / "feed_forward", m, c), add_1(scope / "norm_1", m, c),
      add_2(scope / "norm_2", m, c), add_3(scope / "norm_3", m, c) {}

Tensor DecoderLayer::read_words(const Tensor& y, const SentenceOffsets& target,
                                const Tensor& distance_scores) const {
  return add_1(y, [&](const Tensor& h) {
    return recur ? (*recur)(h, target)
                 : (*attend_self)(h, target, AttentionMask::causal, distance_scores);
  });
}

Tensor DecoderLayer::operator()(const Tensor& y, const SentenceOffsets& target,
                                const Tensor& memory, const SentenceOffsets& source,
                                const Options& options) const {
  const Tensor a = read_words(y, target, options.distance_scores);
  const Tensor b = add_2(a, [&](const Tensor& h) {
    if (options.guided) options.guided->compute_loss(attend_source, h, target, memory, source);
    return attend_source(h, target, memory, source);
  });
  return add_3(b, feed_forward);
}

void GuidedHead::compute_loss(const MultiHeadAttention& attend, const Tensor& h,
                              const SentenceOffsets& target, const Tensor& memory,
                              const SentenceOffsets& source) {
  const int64_t d_k = attend.W_Q.rows() / attend.heads, first = head * d_k;
  const auto project = [&](const Tensor& x, const Tensor& W, const Tensor& b) {
    return linear(x, rows(W, first, d_k), reshape(columns(b, first, d_k), {d_k}));
  };
  const Tensor q = project(h, attend.W_Q, attend.b_Q);       // Q W_i^Q
  const Tensor k = project(memory, attend.W_K, attend.b_K);  // K W_i^K
  loss = guide_loss(q, k, target, source, guide);  // −Σ_n 1/|G_n| Σ_{j∈G_n} log a_nj
}

Tensor WordEmbedder::positions(int64_t longest) const {
  if (!waves) return P;
  const Tensor all = waves->covering(longest + first_position);
  return first_position == 0 ? all : all.window(first_position, all.rows() - first_position);
}

Tensor WordEmbedder::embed_at(const Tensor& ids, const Tensor& position_ids,
                              const Tensor& vectors) const {
  const Dropout mask = dropout_key(dropout);
  if (!norm) return embed(E, vectors, {ids, position_ids, scale, mask});
  return dropped((*norm)(embed(E, vectors, {ids, position_ids, scale, {}})), mask);
}

namespace {

std::optional<SinusoidLayout> sinusoid_layout(Positions positions) {
  switch (positions) {
    case Positions::interleaved:
      return SinusoidLayout::interleaved;
    case Positions::half:
      return SinusoidLayout::half;
    case Positions::half_m1:
      return SinusoidLayout::half_m1;
    default:
      return std::nullopt;
  }
}

}  // namespace

WordEmbedder Transformer::embedder(const char* name, int64_t words, const Tensor& tied) {
  WordEmbedder embed;
  embed.E = tied ? tied : store_.declare_words(std::string(name) + "/E", words, shape_.size);
  if (config_.scale_embeddings) embed.scale = std::sqrt(static_cast<double>(shape_.size));
  embed.dropout = shape_.dropout;
  embed.first_position = config_.first_position;
  if (config_.positions == Positions::learned)
    embed.P = store_.declare(std::string(name) + "/P", {shape_.max_length + 1, shape_.size},
                             ParameterInit::normal(0.02));
  if (const auto layout = sinusoid_layout(config_.positions))
    embed.waves = sinusoid_table(*layout, shape_.size, store_.type(), store_.device());
  if (config_.embedding_norm)
    embed.norm.emplace(ParameterScope{store_, name} / "norm", shape_.size, config_.norm_settings());
  return embed;
}

Transformer::Transformer(const ModelShape& m, const TransformerConfig& c, ElementType type,
                         Device device)
    : Model(type, device, m), config_(c), idle_(idle_memories()) {
  const ParameterScope root{store_, ""};
  embed_source = embedder("source", m.source_words, {});
  embed_target =
      embedder("target", m.target_words, m.tied == TiedEmbeddings::all ? embed_source.E : Tensor());
  if (c.relative()) {
    using enum DistanceBuckets::Directions;
    const double deviation = 1 / std::sqrt(static_cast<double>(m.size));
    const int64_t buckets = c.relative_buckets, longest = c.relative_distance;
    encoder_distances.emplace(root / "encoder", DistanceBuckets{buckets, longest, both}, c.heads,
                              deviation);
    if (!c.recurrent_decoder())
      decoder_distances.emplace(root / "decoder", DistanceBuckets{buckets, longest, backward},
                                c.heads, deviation);
  }
  for (int64_t i = 0; i < m.encoder_layers; ++i)
    encoder_layers.emplace_back(root / "encoder" / "layers" / i, m, c);
  for (int64_t i = 0; i < m.decoder_layers; ++i)
    decoder_layers.emplace_back(root / "decoder" / "layers" / i, m, c);
  if (c.norm == NormPlace::pre || c.final_norm)
    for (const char* stack : {"encoder", "decoder"})
      final_norms.emplace_back(root / stack / "norm", m.size, c.norm_settings());
  W_out = m.tied == TiedEmbeddings::none
              ? store_.declare("output/W", {m.target_words, m.size},
                               ParameterInit::glorot(m.size, m.target_words))
              : embed_target.E;
  if (c.output_bias)
    b_out = store_.declare("output/b", {m.target_words}, ParameterInit::constant(0));
}

void Transformer::freeze_for_inference() const {
  if (store_.type() != ElementType::f32 || store_.device() != Device{Cpu{}}) return;
  auto freeze = [](const FeedForward& f) {
    f.W_1.W.settle();
    f.W_2.W.settle();
    if (f.W_3) f.W_3->W.settle();
  };
  for (const EncoderLayer& layer : encoder_layers) {
    layer.attend.W_QKV.settle();
    layer.attend.W_O.W.settle();
    freeze(layer.feed_forward);
  }
  for (const DecoderLayer& layer : decoder_layers) {
    if (layer.attend_self) {
      layer.attend_self->W_QKV.settle();
      layer.attend_self->W_O.W.settle();
    }
    if (layer.recur) {
      layer.recur->W.settle();
      layer.recur->W_f.settle();
    }
    layer.attend_source.W_Q.settle();
    layer.attend_source.W_KV.settle();
    layer.attend_source.W_O.W.settle();
    freeze(layer.feed_forward);
  }
}

Tensor Transformer::encode(Tensor x, const SentenceOffsets& source) const {
  const Tensor scores = distance_scores(encoder_distances, source.longest);
  for (const EncoderLayer& layer : encoder_layers) x = layer(x, source, scores);
  return final_norms.empty() ? x : final_norms[0](x);
}

Tensor Transformer::decode(Tensor y, const SentenceOffsets& target, const Tensor& memory,
                           const SentenceOffsets& source, GuidedHead* guided) const {
  DecoderLayer::Options options{distance_scores(decoder_distances, target.longest), nullptr};
  for (size_t i = 0; i < decoder_layers.size(); ++i) {
    const bool has_guided_head = guided && guided->layer == static_cast<int64_t>(i);
    options.guided = has_guided_head ? guided : nullptr;
    y = decoder_layers[i](y, target, memory, source, options);
  }
  return final_norms.empty() ? y : final_norms[1](y);
}

namespace {

// A batch that Transformer::prepare() has prepared. `from` holds the offsets of `source`, `to`
// those of `target`.
struct PreparedPairs : PreparedBatch {
  SentenceOffsets from, to;
  Tensor source, target, labels;  // i32, one number for each word
  std::optional<AlignmentTargets> guide;
};

// The alignment links of each row of the decoder. With AlignmentStep::writes, a row has the links
// of the word that it predicts. With AlignmentStep::reads, it has the links of its input word. The
// start symbol and padding have no links. `words` is the number of rows, with padding.
AlignmentTargets alignment_targets(const AlignmentGuidance& guidance, const TokenBatch& target,
                                   AlignmentStep step, int64_t words, Device device) {
  constexpr size_t kLinks = 1024;  // the number of links is padded to a multiple of this
  assert(std::ssize(guidance.offsets) <= words + 1);
  const int32_t shift = step == AlignmentStep::reads ? 1 : 0;
  std::vector<int32_t> offsets{0}, keys;
  for (size_t s = 0; s + 1 < target.offsets.size(); ++s)
    for (int32_t n = target.offsets[s]; n < target.offsets[s + 1]; ++n) {
      if (const int32_t word = n - shift; word >= target.offsets[s])
        for (int32_t link = guidance.offsets[word]; link < guidance.offsets[word + 1]; ++link)
          keys.push_back(guidance.keys[link]);
      offsets.push_back(static_cast<int32_t>(keys.size()));
    }
  offsets.resize(static_cast<size_t>(words) + 1, offsets.back());
  keys.resize((keys.size() + kLinks - 1) / kLinks * kLinks, 0);
  return {Tensor::of(offsets, device), Tensor::of(keys, device)};
}

}  // namespace

std::unique_ptr<PreparedBatch> Transformer::prepare(const TrainingBatch& batch,
                                                    BatchPadding padding) const {
  const Device device = store_.device();
  PaddedSentences source(batch.source), target(batch.target_in);
  fill(source, target, padding, shape_.max_length + 1);
  std::vector<int32_t> labels(batch.target_out.begin(), batch.target_out.end());
  labels.resize(target.ids.size(), -1);

  auto prepared = std::make_unique<PreparedPairs>();
  prepared->from = SentenceOffsets::of(source.offsets, device);
  prepared->to = SentenceOffsets::of(target.offsets, device);
  prepared->from.longest = source.longest;
  prepared->to.longest = target.longest;
  prepared->source = Tensor::of(source.ids, device);
  prepared->target = Tensor::of(target.ids, device);
  prepared->labels = Tensor::of(labels, device);
  if (batch.guidance)
    prepared->guide = alignment_targets(batch.guidance, batch.target_in, config_.alignment_step,
                                        target.words(), device);
  prepared->sizes = {source.longest, target.longest};
  prepared->scores = target.words();
  return prepared;
}

BatchLoss Transformer::loss_of(const PreparedBatch& batch, double label_smoothing,
                               double guided_weight) const {
  const auto& in = dynamic_cast<const PreparedPairs&>(batch);
  const Tensor x = embed_source(in.source, in.from.positions, in.from.longest);
  const Tensor memory = encode(x, in.from);
  std::optional<GuidedHead> guided;
  if (in.guide) guided = GuidedHead{config_.alignment_layer, config_.alignment_head, *in.guide};
  const Tensor y = decode(embed_target(in.target, in.to.positions, in.to.longest), in.to, memory,
                          in.from, guided ? &*guided : nullptr);
  const CrossEntropy out = output_loss(y, W_out, b_out, in.labels, label_smoothing);
  BatchLoss result{out.loss, out.log_likelihood};
  if (guided) {
    result.guided = guided->loss;
    result.surrogate = guided->loss * guided_weight;
  }
  return result;
}

BatchLoss Transformer::loss(const TrainingBatch& batch, double label_smoothing) const {
  assert(!batch.guidance || config_.alignment_layer >= 0);
  const auto prepared = prepare(batch, Tape::live() ? BatchPadding::blocks : BatchPadding::nothing);
  BatchLoss result = loss_of(*prepared, label_smoothing, batch.guidance.weight);
  result.log_likelihood = result.log_likelihood.window(0, std::ssize(batch.target_out));
  return result;
}

}  // namespace fovea
