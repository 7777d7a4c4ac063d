#include "importer/t5_family.h"

#include <cmath>
#include <utility>

#include "importer/position_tables.h"

namespace fovea {
namespace {

constexpr int64_t kLongest = 512;  // pieces of a text in the training of T5

// The activation of feed_forward_proj, "relu" or "gated-gelu", which stands for gelu_new.
void set_activation(const ForeignSettings& config, TransformerConfig& own) {
  const std::string proj = config.text("feed_forward_proj", "relu");
  own.gated = proj.starts_with("gated-");
  if (proj == "gated-gelu") {
    own.activation = Function::gelu_tanh;
  } else if (const std::string name = own.gated ? proj.substr(6) : proj;
             const auto function = activation_named(name)) {
    own.activation = *function;
  } else {
    config.reject("feed_forward_proj",
                  "expected relu, gelu, silu or one of them with 'gated-' before it");
  }
}

}  // namespace

ModelConfig t5_config(const ForeignSettings& config, const ForeignPieces& pieces) {
  config.require_flag("is_encoder_decoder", true);
  config.require_empty("quantization_config");
  if (pieces.foreign_size() != config.size("vocab_size"))
    config.reject("vocab_size", "but " + pieces.file() + " has more pieces, " +
                                    std::to_string(pieces.foreign_size()) +
                                    "; use the files of the same model");
  ModelConfig model;
  model.encoder_layers = config.size("num_layers");
  model.decoder_layers =
      config.has("num_decoder_layers") ? config.size("num_decoder_layers") : model.encoder_layers;
  model.size = config.size("d_model");
  model.tied =
      config.flag("tie_word_embeddings", true) ? TiedEmbeddings::all : TiedEmbeddings::none;
  model.max_length = config.integer("n_positions", kLongest);
  model.dropout = config.number("dropout_rate", 0.1);
  model.source_words = model.target_words = pieces.size();

  TransformerConfig own;
  own.heads = config.size("num_heads");
  own.inner = config.size("d_ff");
  own.norm = NormPlace::pre;
  own.norm_type = NormType::rms;
  own.norm_epsilon = config.number("layer_norm_epsilon", 1e-6);
  own.head_size = config.size("d_kv");
  set_activation(config, own);
  own.positions = Positions::relative;
  own.relative_buckets = config.integer("relative_attention_num_buckets", 32);
  own.relative_distance = config.integer("relative_attention_max_distance", 128);
  own.scale_embeddings = model.tied == TiedEmbeddings::all;
  own.output_bias = true;
  model.network = own;
  return model;
}

namespace {

void map_attention(WeightMapping& weights, const std::string& attend, const std::string& name,
                   float query_scale) {
  weights.copy(attend + "/W_Q", name + ".q.weight", query_scale);
  weights.copy(attend + "/W_K", name + ".k.weight");
  weights.copy(attend + "/W_V", name + ".v.weight");
  weights.copy(attend + "/W_O/W", name + ".o.weight");
}

void map_feed_forward(WeightMapping& weights, const std::string& layer, const std::string& name,
                      bool gated) {
  const std::string own = layer + "/feed_forward", dense = name + ".DenseReluDense";
  weights.copy(own + "/W_1/W", dense + (gated ? ".wi_0.weight" : ".wi.weight"));
  if (gated) weights.copy(own + "/W_3/W", dense + ".wi_1.weight");
  weights.copy(own + "/W_2/W", dense + ".wo.weight");
}

// Sub-layer n of a layer: its norm, and the name of its tensors.
std::string sub_layer(WeightMapping& weights, const std::string& layer, const std::string& name,
                      int n) {
  const std::string part = name + ".layer." + std::to_string(n);
  weights.copy(layer + "/norm_" + std::to_string(n + 1) + "/g", part + ".layer_norm.weight");
  return part;
}

}  // namespace

void map_t5(WeightMapping& weights, const ModelConfig& model, const ForeignPieces& pieces) {
  const auto& own = *model.as<TransformerConfig>();
  const auto query_scale = static_cast<float>(std::sqrt(static_cast<double>(own.head_size)));
  const bool tied = model.tied == TiedEmbeddings::all;
  const auto scale =
      static_cast<float>(tied ? 1 / std::sqrt(static_cast<double>(model.size)) : 1.0);
  weights.copy_words("source/E", "shared.weight", pieces, scale);
  if (!tied) {
    weights.copy_words("target/E", "shared.weight", pieces);
    weights.copy_words("output/W", "lm_head.weight", pieces);
  }
  for (const char* copy :
       {"encoder.embed_tokens.weight", "decoder.embed_tokens.weight", "lm_head.weight"})
    weights.ignore(copy);
  for (const auto& [stack, layers] :
       {std::pair("encoder", model.encoder_layers), {"decoder", model.decoder_layers}}) {
    const std::string prefix = stack;
    const bool decoder = prefix == "decoder";
    weights.copy(prefix + "/bias",
                 prefix + ".block.0.layer.0.SelfAttention.relative_attention_bias.weight");
    for (int64_t i = 0; i < layers; ++i) {
      const std::string layer = prefix + "/layers/" + std::to_string(i);
      const std::string name = prefix + ".block." + std::to_string(i);
      const std::string first = sub_layer(weights, layer, name, 0) + ".SelfAttention";
      map_attention(weights, layer + (decoder ? "/attend_self" : "/attend"), first, query_scale);
      if (decoder)
        map_attention(weights, layer + "/attend_source",
                      sub_layer(weights, layer, name, 1) + ".EncDecAttention", query_scale);
      map_feed_forward(weights, layer, sub_layer(weights, layer, name, decoder ? 2 : 1), own.gated);
    }
    weights.copy(prefix + "/norm/g", prefix + ".final_layer_norm.weight");
  }
  weights.ignore("decoder.block.0.layer.1.EncDecAttention.relative_attention_bias.weight");
  weights.copy_output_bias("", pieces);
  weights.zero_biases();
  weights.check_all_read();
}

}  // namespace fovea
