#include "models/config.h"

#include "models/transformer.h"

namespace fovea {

namespace {

void describe_transformer(ModelConfig& m, Settings& s) {
  s.field("heads", m.heads, "attention heads; must divide size").between(1, 1024);
  s.field("inner", m.inner, "width inside the feed-forward layer").between(1, 65536);
  s.choice("norm", m.norm, {{"post", NormPlace::post}, {"pre", NormPlace::pre}},
           "LayerNorm after each sub-layer (as published) or before it");
  s.field("final_norm", m.final_norm, "a norm after each stack (pre-norm always has one)");
  s.choice("activation", m.activation,
           {{"relu", Function::relu}, {"gelu", Function::gelu}, {"silu", Function::silu}},
           "function inside the feed-forward layer");
  s.choice("positions", m.positions,
           {{"interleaved", Positions::interleaved},
            {"half", Positions::half},
            {"half-m1", Positions::half_m1},
            {"learned", Positions::learned},
            {"none", Positions::none}},
           "sinusoids interleaved (as published) or sines then cosines, learned, or none");
  s.field("scale_embeddings", m.scale_embeddings, "multiply embeddings by the root of size");
  s.field("output_bias", m.output_bias, "a bias per word in the output layer");
  s.field("attention_dropout", m.attention_dropout, "of attention weights").between(0, 0.95);
  s.field("activation_dropout", m.activation_dropout, "inside the feed-forward layer")
      .between(0, 0.95);
}

void check_transformer(const ModelConfig& m, Exit code) {
  check(m.size % m.heads == 0, code, "model.heads: ", m.heads, " heads do not divide a size of ",
        m.size, "; choose a divisor of model.size");
  const bool sinusoids = m.positions != Positions::learned && m.positions != Positions::none;
  check(!sinusoids || m.size % 2 == 0, code, "model.size: sinusoidal positions need an even ",
        "size, found ", m.size, "; or set model.positions to learned or none");
}

}  // namespace

void ModelConfig::describe(Settings& s) {
  s.choice("type", type, {"transformer"}, "kind of network");
  s.field("encoder_layers", encoder_layers, "layers of the encoder").between(1, 64);
  s.field("decoder_layers", decoder_layers, "layers of the decoder").between(1, 64);
  s.field("size", size, "width of the model (d_model), or of the decoder's state")
      .between(1, 16384);
  s.choice("tied", tied, {{"none", Tied::none}, {"output", Tied::output}, {"all", Tied::all}},
           "embeddings shared with the output layer, or with the source side as well");
  s.field("max_length", max_length, "longest sentence in pieces").between(2, 65536);
  s.field("dropout", dropout, "of embeddings and of what each layer gives to the next")
      .between(0, 0.95);
  s.field("source_words", source_words, "size of the source vocabulary; 0: from the vocabulary")
      .between(0, 1e8);
  s.field("target_words", target_words, "size of the target vocabulary; 0: from the vocabulary")
      .between(0, 1e8);
  s.when([this] { return type == "transformer"; }, "model.type: transformer",
         [&] { describe_transformer(*this, s); });
}

void ModelConfig::check(Exit code) const {
  fovea::check(tied != Tied::all || source_words == target_words, code,
               "model.tied: all needs one joint vocabulary, found ", source_words, " source and ",
               target_words, " target words; set model.tied to output or none");
  check_transformer(*this, code);
}

std::unique_ptr<Model> declare_model(const ModelConfig& config, Type type, Device device) {
  config.check(Exit::model);
  return std::make_unique<Transformer>(config, type, device);
}

std::unique_ptr<Model> make_model(const ModelConfig& config, uint64_t seed, Type type,
                                  Device device) {
  auto model = declare_model(config, type, device);
  model->parameters().allocate(seed);
  return model;
}

}  // namespace fovea
