#include "models/transformer.h"

#include <cassert>
#include <cmath>

#include "ops/cross_entropy.h"
#include "ops/embedding.h"
#include "ops/shape.h"
#include "tensor/tape.h"

namespace fovea {

EncoderLayer::EncoderLayer(Scope scope, const ModelConfig& c)
    : attend(scope / "attend", {c.size, c.heads, c.attention_dropout}),
      feed_forward(scope / "feed_forward", c), add_1(scope / "norm_1", c),
      add_2(scope / "norm_2", c) {}

Tensor EncoderLayer::operator()(const Tensor& x, const Packing& source) const {
  const Tensor a = add_1(x, [&](const Tensor& h) { return attend(h, source, Look::everywhere); });
  return add_2(a, feed_forward);
}

DecoderLayer::DecoderLayer(Scope scope, const ModelConfig& c)
    : attend_self(scope / "attend_self", {c.size, c.heads, c.attention_dropout}),
      attend_source(scope / "attend_source", {c.size, c.heads, c.attention_dropout}),
      feed_forward(scope / "feed_forward", c), add_1(scope / "norm_1", c),
      add_2(scope / "norm_2", c), add_3(scope / "norm_3", c) {}

Tensor DecoderLayer::operator()(const Tensor& y, const Packing& target, const Tensor& memory,
                                const Packing& source, GuidedHead* guided) const {
  const Tensor a = add_1(y, [&](const Tensor& h) { return attend_self(h, target, Look::back); });
  const Tensor b = add_2(a, [&](const Tensor& h) {
    if (guided) guided->look(attend_source, h, target, memory, source);
    return attend_source(h, target, memory, source);
  });
  return add_3(b, feed_forward);
}

void GuidedHead::look(const MultiHeadAttention& attend, const Tensor& h, const Packing& target,
                      const Tensor& memory, const Packing& source) {
  const int64_t d_k = attend.W_Q.cols() / attend.heads, first = head * d_k;
  const auto project = [&](const Tensor& x, const Tensor& W, const Tensor& b) {
    return linear(x, rows(W, first, d_k), reshape(columns(b, first, d_k), {d_k}));
  };
  const Tensor q = project(h, attend.W_Q, attend.b_Q);       // Q W_i^Q
  const Tensor k = project(memory, attend.W_K, attend.b_K);  // K W_i^K
  loss = guide_loss(q, k, target, source, guide);  // −Σ_n 1/|G_n| Σ_{j∈G_n} log a_nj
}

Tensor Embedder::operator()(std::span<const int32_t> ids, const Tensor& places,
                            int64_t longest) const {
  const Tensor index = Tensor::of(ids, E.device());
  return embed(E, waves ? waves->rows(longest) : P, {index, places, scale, dropout_key(dropout)});
}

namespace {

std::optional<Waves> waves_of(Positions positions) {
  switch (positions) {
    case Positions::interleaved:
      return Waves::interleaved;
    case Positions::half:
      return Waves::half;
    case Positions::half_m1:
      return Waves::half_m1;
    default:
      return std::nullopt;
  }
}

}  // namespace

Embedder Transformer::embedder(const char* name, int64_t words, const Tensor& tied) {
  const double root = std::sqrt(static_cast<double>(config_.size));
  const Tensor E = tied ? tied
                        : store_.declare(std::string(name) + "/E", {words, config_.size},
                                         Init::normal(1 / root));
  Embedder embed{E, {}, {}, config_.scale_embeddings ? root : 1, config_.dropout};
  if (config_.positions == Positions::learned)
    embed.P = store_.declare(std::string(name) + "/P", {config_.max_length + 1, config_.size},
                             Init::normal(0.02));
  if (const auto waves = waves_of(config_.positions))
    embed.waves.emplace(*waves, config_.size, store_.type(), store_.device());
  return embed;
}

Transformer::Transformer(const ModelConfig& config, Type type, Device device)
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

void Transformer::settle() const {
  if (store_.type() != Type::f32 || store_.device() != Device{Cpu{}}) return;
  auto inner = [](const FeedForward& f) {
    f.W_1.W.settle();
    f.W_2.W.settle();
  };
  for (const EncoderLayer& layer : encoder_layers) {
    layer.attend.W_QKV.settle();
    layer.attend.W_O.W.settle();
    inner(layer.feed_forward);
  }
  for (const DecoderLayer& layer : decoder_layers) {
    layer.attend_self.W_QKV.settle();
    layer.attend_self.W_O.W.settle();
    layer.attend_source.W_Q.settle();
    layer.attend_source.W_KV.settle();
    layer.attend_source.W_O.W.settle();
    inner(layer.feed_forward);
  }
}

Tensor Transformer::encode(Tensor x, const Packing& source) const {
  for (const EncoderLayer& layer : encoder_layers) x = layer(x, source);
  return final_norms.empty() ? x : final_norms[0](x);
}

Tensor Transformer::decode(Tensor y, const Packing& target, const Tensor& memory,
                           const Packing& source, GuidedHead* guided) const {
  for (size_t i = 0; i < decoder_layers.size(); ++i) {
    const bool here = guided && guided->layer == static_cast<int64_t>(i);
    y = decoder_layers[i](y, target, memory, source, here ? guided : nullptr);
  }
  return final_norms.empty() ? y : final_norms[1](y);
}

namespace {

// Note [Whole blocks]
// While training, words of padding are added as one more sentence until the number of words is a
// multiple of kBlock: products then come in few sizes, and each size is prepared once. The
// padding attends only to itself and its label is none, so no gradient comes from it.
constexpr int64_t kBlock = 64;

struct Filled {
  std::vector<int32_t> ids, offsets;

  explicit Filled(const Tokens& t)
      : ids(t.ids.begin(), t.ids.end()), offsets(t.offsets.begin(), t.offsets.end()) {
    if (!Tape::live()) return;
    const auto words = static_cast<int64_t>(ids.size()) + 1;  // at least one word of padding
    ids.resize(static_cast<size_t>((words + kBlock - 1) / kBlock * kBlock), 0);
    offsets.push_back(static_cast<int32_t>(ids.size()));
  }
};

// The head that is guided, told so for all words of the target; padding has no links.
std::optional<GuidedHead> guided_head(const ModelConfig& c, const Guidance& guidance, size_t words,
                                      Device device) {
  if (!guidance) return {};
  assert(c.alignment_layer >= 0 && guidance.offsets.size() <= words + 1);
  std::vector<int32_t> offsets(guidance.offsets.begin(), guidance.offsets.end());
  offsets.resize(words + 1, offsets.back());
  const Guide guide{Tensor::of(offsets, device), Tensor::of(guidance.keys, device)};
  return GuidedHead{c.alignment_layer, c.alignment_head, guide};
}

}  // namespace

BatchLoss Transformer::guided_loss(const Tokens& source, const Tokens& target_in,
                                   std::span<const int32_t> target_out, double label_smoothing,
                                   const Guidance& guidance) const {
  const Filled src(source), tgt(target_in);
  const Packing from = Packing::of(src.offsets, store_.device());
  const Packing to = Packing::of(tgt.offsets, store_.device());
  std::vector<int32_t> labels(target_out.begin(), target_out.end());
  labels.resize(tgt.ids.size(), -1);
  const Tensor memory = encode(embed_source(src.ids, from), from);
  auto guided = guided_head(config_, guidance, tgt.ids.size(), store_.device());
  const Tensor y = decode(embed_target(tgt.ids, to), to, memory, from, guided ? &*guided : nullptr);
  const CrossEntropy out =
      output_loss(y, W_out, b_out, Tensor::of(labels, store_.device()), label_smoothing);
  const auto words = static_cast<int64_t>(target_out.size());
  BatchLoss result{out.loss, out.log_likelihood.window(0, words)};
  if (guided) {
    result.guided = guided->loss;
    result.surrogate = guided->loss * guidance.weight;
  }
  return result;
}

}  // namespace fovea
