#include "importer/fairseq_weights.h"

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "importer/fairseq_layers.h"
#include "importer/position_tables.h"

namespace fovea {
namespace {

constexpr int64_t kFirstPosition = 2;  // after <pad>, which has the id 1
constexpr const char* kModel = "model/";

// An option that Fovea has once, but fairseq has for each side.
int64_t equal_sizes(const OptionTable& options, const std::string& name, int64_t otherwise) {
  const int64_t encoder = options.integer("encoder_" + name, otherwise);
  if (options.integer("decoder_" + name, encoder) != encoder)
    options.reject("decoder_" + name, "the value of encoder_" + name);
  return encoder;
}

bool equal_flags(const OptionTable& options, const std::string& name) {
  const bool encoder = options.flag("encoder_" + name, false);
  if (options.flag("decoder_" + name, encoder) != encoder)
    options.reject("decoder_" + name, "the value of encoder_" + name);
  return encoder;
}

TiedEmbeddings tied_of(const OptionTable& options) {
  if (options.flag("share_all_embeddings", false)) return TiedEmbeddings::all;
  return options.flag("share_decoder_input_output_embed", false) ? TiedEmbeddings::output
                                                                 : TiedEmbeddings::none;
}

}  // namespace

OptionTable fairseq_options(const TensorArchive& archive) {
  for (const std::string prefix : {"cfg/model/", "args/"}) {
    OptionTable options(archive.path() + ": " + prefix.substr(0, prefix.size() - 1));
    for (auto at = archive.metadata().lower_bound(prefix);
         at != archive.metadata().end() && at->first.starts_with(prefix); ++at)
      options.set(at->first.substr(prefix.size()), at->second);
    if (options.has("encoder_layers")) return options;
  }
  fail(ExitCode::model, archive.path(),
       ": found no options of a Transformer, expected cfg.model or args with encoder_layers; only "
       "checkpoints of fairseq are supported");
}

ModelConfig fairseq_config(const OptionTable& options, const ForeignPieces& source,
                           const ForeignPieces& target) {
  for (const char* key :
       {"adaptive_input", "cross_self_attention", "no_cross_attention", "tie_adaptive_weights",
        "no_token_positional_embeddings", "char_inputs", "tie_proj"})
    options.require(key, "false");
  ModelConfig model;
  model.encoder_layers = options.integer("encoder_layers", 6);
  model.decoder_layers = options.integer("decoder_layers", 6);
  model.size = equal_sizes(options, "embed_dim", 512);
  for (const char* key : {"decoder_output_dim", "decoder_input_dim"})
    if (options.integer(key, model.size) != model.size)
      options.reject(key, "the value of decoder_embed_dim");
  model.tied = tied_of(options);
  model.max_length = std::min(options.integer("max_source_positions", 1024),
                              options.integer("max_target_positions", 1024)) -
                     1;
  model.dropout = options.number("dropout", 0.1);
  model.source_words = source.size();
  model.target_words = target.size();

  TransformerConfig own;
  own.heads = equal_sizes(options, "attention_heads", 8);
  own.inner = equal_sizes(options, "ffn_embed_dim", 2048);
  own.norm = equal_flags(options, "normalize_before") ? NormPlace::pre : NormPlace::post;
  own.embedding_norm = options.flag("layernorm_embedding", false);
  const auto activation = activation_named(options.text("activation_fn", "relu"));
  if (!activation) options.reject("activation_fn", "relu, gelu or swish");
  own.activation = *activation;
  const bool learned = equal_flags(options, "learned_pos");
  own.positions = learned ? Positions::learned : Positions::half_m1;
  own.first_position = learned ? 0 : kFirstPosition;
  own.scale_embeddings = !options.flag("no_scale_embedding", false);
  own.output_bias = true;
  own.attention_dropout = options.number("attention_dropout", 0);
  own.activation_dropout = options.number("activation_dropout", 0);
  model.network = own;
  return model;
}

namespace {

void map_positions(WeightMapping& weights, const ModelConfig& model, const std::string& side,
                   const std::string& stack) {
  const std::string prefix = kModel + stack;
  if (weights.wants(side + "/P")) {
    const std::string name = prefix + ".embed_positions.weight";
    std::vector<float> table =
        weights.read(name, {model.max_length + 1 + kFirstPosition, model.size});
    table.erase(table.begin(), table.begin() + kFirstPosition * model.size);
    weights.set(side + "/P", std::move(table), name);
  }
  if (weights.wants(side + "/norm/g"))
    map_norm(weights, side + "/norm", prefix + ".layernorm_embedding");
  weights.ignore(prefix + ".embed_positions._float_tensor");
  weights.ignore(prefix + ".version");
}

}  // namespace

void map_fairseq(WeightMapping& weights, const ModelConfig& model, const TensorArchive& archive,
                 const ForeignPieces& source, const ForeignPieces& target) {
  const std::string decoder = std::string(kModel) + "decoder.embed_tokens.weight",
                    output = std::string(kModel) + "decoder.output_projection.weight";
  weights.copy_words("source/E", std::string(kModel) + "encoder.embed_tokens.weight", source);
  if (model.tied != TiedEmbeddings::all) weights.copy_words("target/E", decoder, target);
  if (model.tied == TiedEmbeddings::none)
    weights.copy_words("output/W",
                       weights.has(output) ? output : std::string(kModel) + "decoder.embed_out",
                       target);
  weights.ignore(decoder);
  weights.ignore(output);
  map_positions(weights, model, "source", "encoder");
  map_positions(weights, model, "target", "decoder");
  map_fairseq_layers(weights, model, kModel);
  weights.copy_output_bias("", target);
  for (const ArchivedTensor& tensor : archive.tensors())  // states of the training
    if (!tensor.name.starts_with(kModel)) weights.ignore(tensor.name);
  weights.check_all_read();
}

}  // namespace fovea
