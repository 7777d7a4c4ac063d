#include "importer/bart_family.h"

#include <algorithm>

#include "base/check.h"
#include "importer/fairseq_layers.h"
#include "importer/position_tables.h"

namespace fovea {
namespace {

// The properties of an architecture that config.json does not state.
struct FamilyMember {
  const char* model_type;
  NormPlace norm;
  bool embedding_norm;
  Positions positions;
  int64_t first_position;
  const char* activation;  // the default value
  bool scaled;             // the default of scale_embedding
};

constexpr FamilyMember kMembers[] = {
    {"marian", NormPlace::post, false, Positions::half, 0, "gelu", false},
    {"m2m_100", NormPlace::pre, false, Positions::half_m1, 2, "relu", true},
    {"bart", NormPlace::post, true, Positions::learned, 0, "gelu", false},
    {"mbart", NormPlace::pre, true, Positions::learned, 0, "gelu", false},
};
constexpr int64_t kLearnedOffset = 2;  // the first two rows of learned positions are never read

const FamilyMember* member(const std::string& model_type) {
  const auto* const found = std::ranges::find_if(
      kMembers, [&](const FamilyMember& m) { return model_type == m.model_type; });
  return found == std::end(kMembers) ? nullptr : found;
}

const FamilyMember& member_of(const ForeignSettings& config) {
  return *member(config.text("model_type", ""));
}

// A size that Fovea has once, but the settings of the model have for each side.
int64_t equal_sizes(const ForeignSettings& config, const char* encoder, const char* decoder) {
  const int64_t size = config.size(encoder);
  if (config.size(decoder) != size)
    config.reject(decoder, std::string("expected the value of ") + encoder +
                               "; a model with different values is not supported");
  return size;
}

bool shared_embeddings(const ForeignSettings& config) {
  return config.flag("share_encoder_decoder_embeddings", true);
}

TiedEmbeddings tied_of(const ForeignSettings& config) {
  if (!config.flag("tie_word_embeddings", true)) return TiedEmbeddings::none;
  return shared_embeddings(config) ? TiedEmbeddings::all : TiedEmbeddings::output;
}

}  // namespace

bool is_bart_family(const std::string& model_type) { return member(model_type) != nullptr; }

ModelConfig bart_family_config(const ForeignSettings& config, const ForeignPieces& source,
                               const ForeignPieces& target) {
  const FamilyMember& family = member_of(config);
  config.require_flag("is_encoder_decoder", true);
  config.require_empty("quantization_config");
  const int64_t words = config.size("vocab_size");
  const auto check_words = [&](const ForeignPieces& pieces, int64_t rows, const char* key) {
    if (pieces.foreign_size() != rows)
      config.reject(key, "but " + pieces.file() + " has " + std::to_string(pieces.foreign_size()) +
                             " pieces; use the files of the same model");
  };
  check_words(source, words, "vocab_size");
  const bool own_target = config.has("decoder_vocab_size");
  check_words(target, own_target ? config.size("decoder_vocab_size") : words,
              own_target ? "decoder_vocab_size" : "vocab_size");

  ModelConfig model;
  model.encoder_layers = config.size("encoder_layers");
  model.decoder_layers = config.size("decoder_layers");
  model.size = config.size("d_model");
  model.tied = tied_of(config);
  model.max_length = config.size("max_position_embeddings") - 1;  // without </s>
  model.dropout = config.number("dropout", 0.1);
  model.source_words = source.size();
  model.target_words = target.size();

  TransformerConfig own;
  own.heads = equal_sizes(config, "encoder_attention_heads", "decoder_attention_heads");
  own.inner = equal_sizes(config, "encoder_ffn_dim", "decoder_ffn_dim");
  own.norm = family.norm;
  own.embedding_norm = family.embedding_norm;
  own.activation = foreign_activation(config, "activation_function", family.activation);
  own.positions = family.positions;
  own.first_position = family.first_position;
  own.scale_embeddings = config.flag("scale_embedding", family.scaled);
  own.output_bias = true;
  own.attention_dropout = config.number("attention_dropout", 0);
  own.activation_dropout = config.number("activation_dropout", 0);
  model.network = own;
  return model;
}

namespace {

// The matrices of embeddings and of the output layer. A tied matrix is stored under one or several
// of its names.
void map_words(WeightMapping& weights, const ModelConfig& model, const ForeignSettings& config,
               const ForeignPieces& source, const ForeignPieces& target) {
  const std::string all = "model.shared.weight", encoder = "model.encoder.embed_tokens.weight",
                    decoder = "model.decoder.embed_tokens.weight", output = "lm_head.weight";
  const auto first_of = [&](const std::vector<std::string>& names) {
    for (const std::string& name : names)
      if (weights.has(name)) return name;
    return names.front();
  };
  const bool shared = shared_embeddings(config), tied = model.tied != TiedEmbeddings::none;
  std::vector<std::string> of_source{encoder}, of_target{decoder};
  if (shared) of_source = {all, encoder, decoder}, of_target = {all, decoder, encoder};
  if (tied) of_target.push_back(output);
  if (tied && shared) of_source.push_back(output);
  weights.copy_words("source/E", first_of(of_source), source);
  if (model.tied != TiedEmbeddings::all)
    weights.copy_words("target/E", first_of(of_target), target);
  if (!tied) weights.copy_words("output/W", output, target);
  for (const std::string& name : {all, encoder, decoder, output}) weights.ignore(name);
}

void map_learned_positions(WeightMapping& weights, const ModelConfig& model, const char* side,
                           const std::string& stack) {
  const std::string name = "model." + stack + ".embed_positions.weight";
  const int64_t rows = model.max_length + 1;
  std::vector<float> table = weights.read(name, {rows + kLearnedOffset, model.size});
  table.erase(table.begin(), table.begin() + kLearnedOffset * model.size);
  weights.set(std::string(side) + "/P", std::move(table), name);
}

}  // namespace

void map_bart_family(WeightMapping& weights, const ModelConfig& model,
                     const ForeignSettings& config, const ForeignPieces& source,
                     const ForeignPieces& target) {
  const FamilyMember& family = member_of(config);
  map_words(weights, model, config, source, target);
  for (const auto& [side, stack] : {std::pair("source", "encoder"), {"target", "decoder"}}) {
    const std::string name = std::string("model.") + stack;
    if (family.positions == Positions::learned)
      map_learned_positions(weights, model, side, stack);
    else
      for (const char* table : {".embed_positions.weight", ".embed_positions.weights"})
        check_position_table(weights, name + table, model);
    if (family.embedding_norm)
      map_norm(weights, std::string(side) + "/norm", name + ".layernorm_embedding");
  }
  map_fairseq_layers(weights, model, "model.");
  weights.copy_output_bias(weights.has("final_logits_bias") ? "final_logits_bias" : "", target);
  weights.check_all_read();
}

}  // namespace fovea
