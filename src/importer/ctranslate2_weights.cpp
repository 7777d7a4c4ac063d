#include "importer/ctranslate2_weights.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/check.h"
#include "importer/position_tables.h"

namespace fovea {
namespace {

// The value of a scalar variable, or `otherwise` if the file does not have it.
double scalar(const TensorArchive& archive, const std::string& name, double otherwise) {
  const ArchivedTensor* tensor = archive.find(name);
  if (tensor == nullptr) return otherwise;
  check(tensor->elements() == 1, ExitCode::model, archive.path(), ": variable '", name,
        "': ", tensor->elements(), " values, expected one");
  return archive.floats(*tensor).front();
}

[[noreturn]] void reject(const TensorArchive& archive, const std::string& variable, double found,
                         const std::string& expected) {
  fail(ExitCode::model, archive.path(), ": variable '", variable, "': ", found, ", expected ",
       expected, "; other models are not supported");
}

void require(const TensorArchive& archive, const std::string& name, double value) {
  const double found = scalar(archive, name, value);
  if (found != value) reject(archive, name, found, fmt::format("{}", value));
}

// A setting that each stack has, but Fovea's network has once.
double of_both(const TensorArchive& archive, const std::string& name, double otherwise) {
  const double encoder = scalar(archive, "encoder/" + name, otherwise);
  const double decoder = scalar(archive, "decoder/" + name, otherwise);
  if (encoder != decoder)
    reject(archive, "decoder/" + name, decoder, fmt::format("that of the encoder, {}", encoder));
  return encoder;
}

Function activation_of(const TensorArchive& archive) {  // the enum ActivationType
  const double found = of_both(archive, "activation", 0);
  constexpr std::pair<int, Function> kFunctions[] = {
      {0, Function::relu}, {1, Function::gelu_tanh}, {2, Function::silu}, {3, Function::gelu}};
  for (const auto& [number, function] : kFunctions)
    if (found == number) return function;
  reject(archive, "encoder/activation", found, "0 to 3: relu, gelu (tanh), silu or gelu");
}

const ArchivedTensor& matrix(const TensorArchive& archive, const std::string& name) {
  const ArchivedTensor& tensor = archive.get(name);
  check(tensor.shape.size() == 2, ExitCode::model, archive.path(), ": variable '", name,
        "': ", tensor.shape.size(), " axes, expected a matrix");
  return tensor;
}

int64_t layers_of(const TensorArchive& archive, const std::string& stack) {
  int64_t layers = 0;
  while (archive.find(fmt::format("{}/layer_{}/self_attention/linear_0/weight", stack, layers)))
    ++layers;
  check(layers > 0, ExitCode::model, archive.path(), ": variable '", stack,
        "/layer_0/self_attention/linear_0/weight': missing; only Transformers are supported");
  return layers;
}

std::string source_words_of(const TensorArchive& archive) {
  const std::string numbered = "encoder/embeddings_0/weight";
  return archive.find(numbered) ? numbered : "encoder/embeddings/weight";
}

bool same_values(const TensorArchive& archive, const std::string& a, const std::string& b) {
  const ArchivedTensor &first = archive.get(a), &second = archive.get(b);
  if (first.shape != second.shape) return false;
  const auto x = archive.bytes(first).bytes, y = archive.bytes(second).bytes;
  if (x.data() == y.data() && x.size() == y.size()) return true;  // an alias
  return archive.floats(first) == archive.floats(second);
}

TiedEmbeddings tied_of(const TensorArchive& archive) {
  const std::string target = "decoder/embeddings/weight";
  if (!same_values(archive, target, "decoder/projection/weight")) return TiedEmbeddings::none;
  return same_values(archive, source_words_of(archive), target) ? TiedEmbeddings::all
                                                                : TiedEmbeddings::output;
}

// The positions of a stack: a stored table, or the one that CTranslate2 computes.
SinusoidTableKind positions_of(const TensorArchive& archive, const std::string& stack,
                               int64_t size) {
  const std::string name = stack + "/position_encodings/encodings";
  if (archive.find(name) == nullptr) return {Positions::half_m1, 1};
  const ArchivedTensor& table = matrix(archive, name);
  check(table.shape[1] == size, ExitCode::model, archive.path(), ": variable '", name,
        "': ", table.shape[1], " columns, expected ", size);
  return recognise_sinusoids(archive.floats(table), size)
      .value_or(SinusoidTableKind{Positions::learned, 0});
}

void set_positions(const TensorArchive& archive, ModelConfig& model, TransformerConfig& own) {
  const SinusoidTableKind encoder = positions_of(archive, "encoder", model.size),
                          decoder = positions_of(archive, "decoder", model.size);
  check(encoder.positions == decoder.positions && encoder.first_position == decoder.first_position,
        ExitCode::model, archive.path(), ": the encoder and the decoder have different kinds of ",
        "positions, expected the same; this variant is not supported");
  own.positions = encoder.positions;
  own.first_position = encoder.first_position;
  model.max_length = 512;
  for (const char* stack : {"encoder", "decoder"})
    if (const ArchivedTensor* table =
            archive.find(std::string(stack) + "/position_encodings/encodings"))
      model.max_length = std::min(model.max_length, table->shape[0] - 1);
  if (own.positions == Positions::learned)
    model.max_length = matrix(archive, "encoder/position_encodings/encodings").shape[0] - 1;
}

}  // namespace

bool ctranslate2_starts_from_zero(const TensorArchive& archive) {
  return scalar(archive, "decoder/start_from_zero_embedding", 0) != 0;
}

ModelConfig ctranslate2_config(const TensorArchive& archive, const ForeignSettings& config,
                               const ForeignPieces& source, const ForeignPieces& target) {
  const std::string& spec = archive.metadata().at("spec");
  check(spec.empty() || spec == "TransformerSpec", ExitCode::model, archive.path(),
        ": specification '", spec, "', expected TransformerSpec; only translation models are ",
        "supported");
  for (const char* name : {"decoder/alibi", "decoder/no_final_norm",
                           "decoder/multi_query_attention", "encoder/multi_query_attention",
                           "encoder/rms_norm", "decoder/rms_norm", "decoder/parallel_residual"})
    require(archive, name, 0);
  ModelConfig model;
  const ArchivedTensor& words = matrix(archive, "decoder/embeddings/weight");
  model.size = words.shape[1];
  model.encoder_layers = layers_of(archive, "encoder");
  model.decoder_layers = layers_of(archive, "decoder");
  model.tied = tied_of(archive);
  model.source_words = source.size();
  model.target_words = target.size();

  TransformerConfig own;
  own.heads = static_cast<int64_t>(of_both(archive, "num_heads", 8));
  own.inner = matrix(archive, "encoder/layer_0/ffn/linear_0/weight").shape[0];
  own.norm = of_both(archive, "pre_norm", 1) != 0 ? NormPlace::pre : NormPlace::post;
  own.final_norm = archive.find("encoder/layer_norm/gamma") != nullptr;
  own.norm_epsilon = config.number("layer_norm_epsilon", 1e-5);
  own.embedding_norm = archive.find("encoder/layernorm_embedding/gamma") != nullptr;
  own.activation = activation_of(archive);
  set_positions(archive, model, own);
  own.scale_embeddings = of_both(archive, "scale_embeddings", 1) != 0;
  own.output_bias = true;
  model.network = own;
  return model;
}

namespace {

void map_norm(WeightMapping& weights, const std::string& norm, const std::string& name) {
  weights.copy(norm + "/g", name + "/gamma");
  weights.copy(norm + "/b", name + "/beta");
}

// One of `total` projections that linear layer `name` has side by side.
void map_projection(WeightMapping& weights, const std::string& weight, const std::string& bias,
                    const std::string& name, RowRange rows) {
  weights.copy_rows(weight, name + "/weight", rows);
  if (weights.has(name + "/bias")) weights.copy_rows(bias, name + "/bias", rows);
}

void map_affine(WeightMapping& weights, const std::string& layer, const std::string& name) {
  map_projection(weights, layer + "/W", layer + "/b", name, {0, 1});
}

void map_self_attention(WeightMapping& weights, const std::string& attend,
                        const std::string& name) {
  int64_t row = 0;
  for (const char* letter : {"Q", "K", "V"})
    map_projection(weights, attend + "/W_" + letter, attend + "/b_" + letter, name + "/linear_0",
                   {row++, 3});
  map_affine(weights, attend + "/W_O", name + "/linear_1");
}

void map_cross_attention(WeightMapping& weights, const std::string& attend,
                         const std::string& name) {
  map_projection(weights, attend + "/W_Q", attend + "/b_Q", name + "/linear_0", {0, 1});
  map_projection(weights, attend + "/W_K", attend + "/b_K", name + "/linear_1", {0, 2});
  map_projection(weights, attend + "/W_V", attend + "/b_V", name + "/linear_1", {1, 2});
  map_affine(weights, attend + "/W_O", name + "/linear_2");
}

void map_layer(WeightMapping& weights, const std::string& stack, int64_t i) {
  const bool decoder = stack == "decoder";
  const std::string layer = fmt::format("{}/layers/{}", stack, i),
                    name = fmt::format("{}/layer_{}", stack, i);
  map_self_attention(weights, layer + (decoder ? "/attend_self" : "/attend"),
                     name + "/self_attention");
  map_norm(weights, layer + "/norm_1", name + "/self_attention/layer_norm");
  if (decoder) {
    map_cross_attention(weights, layer + "/attend_source", name + "/attention");
    map_norm(weights, layer + "/norm_2", name + "/attention/layer_norm");
  }
  map_affine(weights, layer + "/feed_forward/W_1", name + "/ffn/linear_0");
  map_affine(weights, layer + "/feed_forward/W_2", name + "/ffn/linear_1");
  map_norm(weights, layer + (decoder ? "/norm_3" : "/norm_2"), name + "/ffn/layer_norm");
}

void map_stack(WeightMapping& weights, const ModelConfig& model, const std::string& stack,
               const std::string& side) {
  const int64_t layers = stack == "decoder" ? model.decoder_layers : model.encoder_layers;
  for (int64_t i = 0; i < layers; ++i) map_layer(weights, stack, i);
  if (weights.wants(stack + "/norm/g")) map_norm(weights, stack + "/norm", stack + "/layer_norm");
  if (weights.wants(side + "/norm/g"))
    map_norm(weights, side + "/norm", stack + "/layernorm_embedding");
  const std::string table = stack + "/position_encodings/encodings";
  if (weights.wants(side + "/P"))
    weights.copy(side + "/P", table);
  else
    weights.ignore(table);
}

}  // namespace

void map_ctranslate2(WeightMapping& weights, const TensorArchive& archive, const ModelConfig& model,
                     const ForeignPieces& source, const ForeignPieces& target) {
  weights.copy_words("source/E", source_words_of(archive), source);
  if (model.tied != TiedEmbeddings::all)
    weights.copy_words("target/E", "decoder/embeddings/weight", target);
  if (model.tied == TiedEmbeddings::none)
    weights.copy_words("output/W", "decoder/projection/weight", target);
  map_stack(weights, model, "encoder", "source");
  map_stack(weights, model, "decoder", "target");
  const std::string bias = "decoder/projection/bias";
  weights.copy_output_bias(weights.has(bias) ? bias : "", target);
  weights.zero_biases();
  for (const ArchivedTensor& tensor : archive.tensors())  // settings, scales and tied matrices
    if (tensor.shape.empty() || tensor.name.ends_with("_scale") ||
        tensor.name == "decoder/alignment_heads" || tensor.name.ends_with("embeddings/weight") ||
        tensor.name == "decoder/projection/weight")
      weights.ignore(tensor.name);
  weights.check_all_read();
}

}  // namespace fovea
