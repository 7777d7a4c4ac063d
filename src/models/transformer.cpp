#include "models/transformer.h"

#include <cmath>

#include "nn/positions.h"
#include "ops/cross_entropy.h"
#include "ops/embedding.h"

namespace fovea {

EncoderLayer::EncoderLayer(Scope scope, const TransformerConfig& c)
    : attend(scope / "attend", {c.size, c.heads, c.attention_dropout}),
      feed_forward(scope / "feed_forward", c), add_1(scope / "norm_1", c),
      add_2(scope / "norm_2", c) {}

Tensor EncoderLayer::operator()(const Tensor& x, const Packing& source) const {
  const Tensor a = add_1(x, [&](const Tensor& h) { return attend(h, source, Look::everywhere); });
  return add_2(a, feed_forward);
}

DecoderLayer::DecoderLayer(Scope scope, const TransformerConfig& c)
    : attend_self(scope / "attend_self", {c.size, c.heads, c.attention_dropout}),
      attend_source(scope / "attend_source", {c.size, c.heads, c.attention_dropout}),
      feed_forward(scope / "feed_forward", c), add_1(scope / "norm_1", c),
      add_2(scope / "norm_2", c), add_3(scope / "norm_3", c) {}

Tensor DecoderLayer::operator()(const Tensor& y, const Packing& target, const Tensor& memory,
                                const Packing& source) const {
  const Tensor a = add_1(y, [&](const Tensor& h) { return attend_self(h, target, Look::back); });
  const Tensor b =
      add_2(a, [&](const Tensor& h) { return attend_source(h, target, memory, source); });
  return add_3(b, feed_forward);
}

Tensor Embedder::operator()(std::span<const int32_t> ids, const Tensor& places) const {
  const Tensor index = Tensor::of(ids, E.device());
  return embed(E, P, {index, places, scale, dropout_key(dropout)});
}

namespace {

Tensor position_table(ParameterStore& store, const TransformerConfig& c, const char* name) {
  switch (c.positions) {
    case Positions::none:
      return {};
    case Positions::learned:
      return store.declare(std::string(name) + "/P", {c.max_length + 1, c.size},
                           Init::normal(0.02));
    case Positions::interleaved:
      return sinusoids(Waves::interleaved, c.max_length + 1, c.size, store.type(), store.device());
    case Positions::half:
      return sinusoids(Waves::half, c.max_length + 1, c.size, store.type(), store.device());
    case Positions::half_m1:
      return sinusoids(Waves::half_m1, c.max_length + 1, c.size, store.type(), store.device());
  }
  return {};
}

}  // namespace

Embedder Transformer::embedder(const char* name, int64_t words, const Tensor& tied) {
  const double root = std::sqrt(static_cast<double>(config_.size));
  const Tensor E = tied ? tied
                        : store_.declare(std::string(name) + "/E", {words, config_.size},
                                         Init::normal(1 / root));
  return {E, position_table(store_, config_, name), config_.scale_embeddings ? root : 1,
          config_.dropout};
}

Transformer::Transformer(const TransformerConfig& config, Type type, Device device)
    : Model(type, device), config_(config) {
  const Scope root{store_, ""};
  embed_source = embedder("source", config.source_words, {});
  embed_target =
      embedder("target", config.target_words, config.tied == Tied::all ? embed_source.E : Tensor());
  for (int64_t i = 0; i < config.encoder_layers; ++i)
    encoder_layers.emplace_back(root / "encoder" / "layers" / i, config);
  for (int64_t i = 0; i < config.decoder_layers; ++i)
    decoder_layers.emplace_back(root / "decoder" / "layers" / i, config);
  if (config.norm == NormPlace::pre || config.final_norm)
    for (const char* stack : {"encoder", "decoder"})
      final_norms.emplace_back(root / stack / "norm", config.size);
  W_out = config.tied == Tied::none ? store_.declare("output/W", {config.target_words, config.size},
                                                     Init::glorot(config.size, config.target_words))
                                    : embed_target.E;
  if (config.output_bias)
    b_out = store_.declare("output/b", {config.target_words}, Init::constant(0));
}

Tensor Transformer::encode(Tensor x, const Packing& source) const {
  for (const EncoderLayer& layer : encoder_layers) x = layer(x, source);
  return final_norms.empty() ? x : final_norms[0](x);
}

Tensor Transformer::decode(Tensor y, const Packing& target, const Tensor& memory,
                           const Packing& source) const {
  for (const DecoderLayer& layer : decoder_layers) y = layer(y, target, memory, source);
  return final_norms.empty() ? y : final_norms[1](y);
}

BatchLoss Transformer::loss(const Tokens& source, const Tokens& target_in,
                            std::span<const int32_t> target_out, double label_smoothing) const {
  const Packing from = Packing::of(source.offsets, store_.device());
  const Packing to = Packing::of(target_in.offsets, store_.device());
  const Tensor memory = encode(embed_source(source.ids, from.positions), from);
  const Tensor y = decode(embed_target(target_in.ids, to.positions), to, memory, from);
  const Tensor labels = Tensor::of(target_out, store_.device());
  const CrossEntropy out = output_loss(y, W_out, b_out, labels, label_smoothing);
  return {out.loss, out.log_likelihood};
}

}  // namespace fovea
