#include "importer/marian_weights.h"

#include <fmt/format.h>

#include <utility>

#include "base/check.h"
#include "importer/position_tables.h"

namespace fovea {
namespace {

constexpr double kMarianEpsilon = 1e-6;
constexpr int64_t kLongest = 512;

// The letters of transformer-preprocess and -postprocess without dropout, d.
std::string steps_of(const OptionTable& options, const std::string& key,
                     const std::string& otherwise) {
  std::string steps = options.text(key, otherwise);
  std::erase(steps, 'd');
  return steps;
}

void set_norms(const OptionTable& options, TransformerConfig& own) {
  const std::string before = steps_of(options, "transformer-preprocess", "");
  const std::string after = steps_of(options, "transformer-postprocess", "dan");
  const std::string top = steps_of(options, "transformer-postprocess-top", "");
  if (before.empty() && after == "an") {
    own.norm = NormPlace::post;
    own.final_norm = top == "n";
    if (!top.empty() && top != "n") options.reject("transformer-postprocess-top", "n or nothing");
  } else if (before == "n" && after == "a") {
    own.norm = NormPlace::pre;
    if (top != "n") options.reject("transformer-postprocess-top", "n");
  } else {
    options.reject("transformer-postprocess",
                   "dan without transformer-preprocess, or da with the preprocess n");
  }
  if (!steps_of(options, "transformer-postprocess-emb", "d").empty())
    options.reject("transformer-postprocess-emb", "d or nothing");
}

TiedEmbeddings tied_of(const OptionTable& options) {
  const bool sources = options.flag("tied-embeddings-src", false);
  const bool output = options.flag("tied-embeddings", false);
  if (options.flag("tied-embeddings-all", false) || (sources && output)) return TiedEmbeddings::all;
  return output ? TiedEmbeddings::output : TiedEmbeddings::none;
}

DecoderLayerType decoder_layer_of(const OptionTable& options) {
  const std::string type = options.text("transformer-decoder-autoreg", "self-attention");
  if (type == "self-attention") return DecoderLayerType::attention;
  if (type != "rnn") options.reject("transformer-decoder-autoreg", "self-attention or rnn");
  options.require("dec-cell", "ssru");
  options.require("transformer-rnn-projection", "false");
  return DecoderLayerType::ssru;
}

void require_known_variant(const OptionTable& options) {
  for (const auto& [key, value] : {std::pair("type", "transformer"),
                                   {"transformer-ffn-depth", "2"},
                                   {"ulr", "false"},
                                   {"transformer-no-projection", "false"},
                                   {"transformer-no-bias", "false"},
                                   {"transformer-no-affine", "false"},
                                   {"output-omit-bias", "false"},
                                   {"right-left", "false"},
                                   {"lemma-dim-emb", "0"},
                                   {"transformer-pool", "false"},
                                   {"transformer-train-position-embeddings", "false"},
                                   {"concat-factors", "false"},
                                   {"embedding-normalization", "false"}})
    options.require(key, value);
  for (const char* key : {"transformer-tied-layers", "input-types", "factors-dim-emb"})
    if (!options.list(key).empty()) options.reject(key, "an empty list");
}

}  // namespace

ModelConfig marian_config(const OptionTable& options, const ForeignPieces& source,
                          const ForeignPieces& target) {
  require_known_variant(options);
  ModelConfig model;
  model.encoder_layers = options.integer("enc-depth", 6);
  model.decoder_layers = options.integer("dec-depth", 6);
  model.size = options.integer("dim-emb", 512);
  model.tied = tied_of(options);
  model.max_length = kLongest;
  model.source_words = source.size();
  model.target_words = target.size();

  TransformerConfig own;
  own.heads = options.integer("transformer-heads", 8);
  own.inner = options.integer("transformer-dim-ffn", 2048);
  if (const int64_t decoder = options.integer("transformer-decoder-dim-ffn", 0))
    if (decoder != own.inner)
      options.reject("transformer-decoder-dim-ffn", "the value of transformer-dim-ffn");
  set_norms(options, own);
  own.norm_epsilon = kMarianEpsilon;
  const auto activation = activation_named(options.text("transformer-ffn-activation", "swish"));
  if (!activation) options.reject("transformer-ffn-activation", "relu, gelu or swish");
  own.activation = *activation;
  own.decoder_layer = decoder_layer_of(options);
  own.positions = Positions::half_m1;
  own.scale_embeddings = true;
  own.output_bias = true;
  model.network = own;
  return model;
}

namespace {

// Marian computes x W + b: its matrices are [in, out].
class MarianMapping {
 public:
  MarianMapping(WeightMapping& weights, const TransformerConfig& own)
      : weights_(weights), pre_(own.norm == NormPlace::pre) {}

  void affine(const std::string& layer, const std::string& W, const std::string& b) {
    weights_.copy_transposed(layer + "/W", W);
    weights_.copy(layer + "/b", b);
  }
  void attention(const std::string& attend, const std::string& name) {
    for (const auto& [letter, part] : {std::pair("Q", "q"), {"K", "k"}, {"V", "v"}}) {
      weights_.copy_transposed(attend + "/W_" + letter, name + "_W" + part);
      weights_.copy(attend + "/b_" + letter, name + "_b" + part);
    }
    affine(attend + "/W_O", name + "_Wo", name + "_bo");
  }
  void ssru(const std::string& ssru, const std::string& name) {
    weights_.copy_transposed(ssru + "/W", name + "_W");
    weights_.copy_transposed(ssru + "/W_f", name + "_Wf");
    weights_.copy(ssru + "/b_f", name + "_bf");
  }
  void norm(const std::string& norm, const std::string& name) {
    const std::string place = pre_ ? "_pre" : "";
    weights_.copy(norm + "/g", name + "_ln_scale" + place);
    weights_.copy(norm + "/b", name + "_ln_bias" + place);
  }
  void final_norm(const std::string& stack) {
    weights_.copy(stack + "/norm/g", stack + "_top_ln_scale");
    weights_.copy(stack + "/norm/b", stack + "_top_ln_bias");
  }
  void feed_forward(const std::string& layer, const std::string& name) {
    affine(layer + "/feed_forward/W_1", name + "_ffn_W1", name + "_ffn_b1");
    affine(layer + "/feed_forward/W_2", name + "_ffn_W2", name + "_ffn_b2");
  }

 private:
  WeightMapping& weights_;
  bool pre_;
};

void map_layers(WeightMapping& weights, const ModelConfig& model, const TransformerConfig& own) {
  MarianMapping map(weights, own);
  for (int64_t i = 0; i < model.encoder_layers; ++i) {
    const std::string layer = fmt::format("encoder/layers/{}", i);
    const std::string name = fmt::format("encoder_l{}", i + 1);
    map.attention(layer + "/attend", name + "_self");
    map.norm(layer + "/norm_1", name + "_self_Wo");
    map.feed_forward(layer, name);
    map.norm(layer + "/norm_2", name + "_ffn_ffn");
  }
  const bool ssru = own.decoder_layer == DecoderLayerType::ssru;
  for (int64_t i = 0; i < model.decoder_layers; ++i) {
    const std::string layer = fmt::format("decoder/layers/{}", i);
    const std::string name = fmt::format("decoder_l{}", i + 1);
    if (ssru)
      map.ssru(layer + "/ssru", name + "_rnn");
    else
      map.attention(layer + "/attend_self", name + "_self");
    map.norm(layer + "/norm_1", name + (ssru ? "_rnn_ffn" : "_self_Wo"));
    map.attention(layer + "/attend_source", name + "_context");
    map.norm(layer + "/norm_2", name + "_context_Wo");
    map.feed_forward(layer, name);
    map.norm(layer + "/norm_3", name + "_ffn_ffn");
  }
  for (const char* stack : {"encoder", "decoder"})
    if (weights.wants(std::string(stack) + "/norm/g")) map.final_norm(stack);
}

void map_words(WeightMapping& weights, const ModelConfig& model, const OptionTable& options,
               const ForeignPieces& source, const ForeignPieces& target) {
  const bool one_matrix =
      model.tied == TiedEmbeddings::all || options.flag("tied-embeddings-src", false);
  weights.copy_words("source/E", one_matrix ? "Wemb" : "encoder_Wemb", source);
  if (model.tied != TiedEmbeddings::all)
    weights.copy_words("target/E", one_matrix ? "Wemb" : "decoder_Wemb", target);
  if (model.tied == TiedEmbeddings::none) {
    const std::string stored = "decoder_ff_logit_out_W", by_words = "decoder_ff_logit_out_Wt";
    if (weights.has(by_words)) {
      weights.copy_words("output/W", by_words, target);
    } else {
      const std::vector<float> values =
          transposed(weights.read(stored, {model.size, target.foreign_size()}), model.size,
                     target.foreign_size());
      weights.set("output/W", in_piece_order(values, model.size, target, 0), stored);
    }
  }
  weights.copy_output_bias("decoder_ff_logit_out_b", target);
}

}  // namespace

void map_marian(WeightMapping& weights, const ModelConfig& model, const OptionTable& options,
                const TensorArchive& archive, const ForeignPieces& source,
                const ForeignPieces& target) {
  map_words(weights, model, options, source, target);
  map_layers(weights, model, *model.as<TransformerConfig>());
  for (const ArchivedTensor& tensor : archive.tensors())  // scales of activations, and options
    if (tensor.name.ends_with("_QuantMultA") || tensor.name.starts_with("special:"))
      weights.ignore(tensor.name);
  weights.check_all_read();
}

}  // namespace fovea
