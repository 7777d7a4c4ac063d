#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <variant>
#include <vector>

#include "attention/registry.h"
#include "base/settings.h"
#include "models/generation_config.h"
#include "models/model.h"
#include "nn/layers.h"
#include "nn/recurrent_layers.h"
#include "ops/elementwise.h"

namespace fovea {

enum class NormPlace { post, pre };
enum class Positions { interleaved, half, half_m1, learned, relative, none };
enum class DecoderLayerType { attention, ssru };  // how a layer reads the earlier target words
// Whether attention precedes the recurrent step of the decoder (bahdanau) or follows it (luong).
enum class DecoderForm { bahdanau, luong };
// What the encoder of a text classifier reads at a time: the whole text, or one sentence.
enum class EncoderContext { text, sentence };
// The query of a text classifier's attention: a parameter, the summary of the text, or the summary
// of the question.
enum class ReaderQuery { learned, summary, question };

// The settings of one type of network. If the combination of settings is impossible, check() throws
// Error(code) with the reason.
struct TransformerConfig {
  static constexpr const char* kName = "transformer";
  int64_t heads = 8, inner = 2048;
  NormPlace norm = NormPlace::post;
  NormType norm_type = NormType::layer;
  double norm_epsilon = kNormEpsilon;
  bool final_norm = false;      // a norm after each stack of layers; always with NormPlace::pre
  bool embedding_norm = false;  // a norm after the sum of embeddings and positions
  int64_t head_size = 0;        // d_k; 0: size / heads
  Function activation = Function::relu;
  bool gated = false;  // activations are multiplied by a second projection
  DecoderLayerType decoder_layer = DecoderLayerType::attention;
  Positions positions = Positions::interleaved;
  int64_t first_position = 0;  // position of the first word in the table of sinusoids
  int64_t relative_buckets = 32, relative_distance = 128;  // of relative positions
  bool scale_embeddings = true;  // multiply them by √size, as in the paper
  bool output_bias = false;
  double attention_dropout = 0;   // rate for attention weights
  double activation_dropout = 0;  // rate inside the feed-forward layer
  // The layer and head of the cross-attention that is trained on reference alignments; −1: none.
  int64_t alignment_layer = -1, alignment_head = -1;
  AlignmentStep alignment_step = AlignmentStep::writes;

  void describe(Settings& s);
  void check(const ModelShape& m, ExitCode code) const;
  NormSettings norm_settings() const { return {norm_type, norm_epsilon}; }
  bool relative() const { return positions == Positions::relative; }
  bool recurrent_decoder() const { return decoder_layer == DecoderLayerType::ssru; }
  // heads · d_k: the width of the queries, keys and values of an attention layer.
  int64_t attention_size(const ModelShape& m) const {
    return head_size > 0 ? heads * head_size : m.size;
  }
};

// The settings that recurrent models and text classifiers share.
struct EncoderConfig {
  Cell cell = Cell::gru;
  bool bidirectional = true;
  int64_t embedding = 0, encoder_size = 0;  // 0: the default of the functions below
  AttentionConfig attention;

  void describe(Settings& s);
  // The sizes that the settings give. A setting of 0 is replaced by its default.
  int64_t embedding_size(const ModelShape& m) const { return embedding > 0 ? embedding : m.size; }
  int64_t annotation_size(const ModelShape& m) const {  // size of h_j
    return (encoder_size > 0 ? encoder_size : m.size) * (bidirectional ? 2 : 1);
  }
  RecurrentStack::Sizes sizes(const ModelShape& m) const;
};

struct RecurrentConfig : EncoderConfig {
  static constexpr const char* kName = "recurrent";
  DecoderForm decoder = DecoderForm::bahdanau;
  bool input_feeding = true;  // only luong: h̃_{t−1} is an input of step t
  int64_t readout = 0;        // 0: default, see readout_size()

  void describe(Settings& s);  // without the settings of EncoderConfig
  void check(const ModelShape& m, ExitCode code) const;
  int64_t readout_size(const ModelShape& m) const {
    if (!attention.attends()) return m.size;  // without attention, the readout is the decoder state
    return readout > 0 ? readout : m.tied == TiedEmbeddings::none ? m.size : embedding_size(m);
  }
  AttentionSizes attention_sizes(const ModelShape& m) const {
    return {m.size, annotation_size(m), m.max_length,
            bidirectional ? SummaryStates::both_ends : SummaryStates::last_word};
  }
};

struct ReaderConfig : EncoderConfig {
  static constexpr const char* kName = "reader";
  ReaderQuery query = ReaderQuery::summary;
  EncoderContext context = EncoderContext::text;

  void describe(Settings& s);  // without the settings of EncoderConfig
  void check(const ModelShape& m, ExitCode code) const;
};

// The configuration of a model: `model:` in a recipe, and config.yml in a model directory. It
// rejects keys that belong to other types of network.
struct ModelConfig : ModelShape {
  std::variant<TransformerConfig, RecurrentConfig, ReaderConfig> network;
  GenerationConfig generation = {};  // a text classifier does not use it

  void describe(Settings& s);
  void check(ExitCode code) const;
  const char* type() const {  // the name of the type of network in recipes
    return std::visit([](const auto& own) { return own.kName; }, network);
  }
  // The settings of the network if their type is Own, otherwise null.
  template <class Own>
  const Own* as() const {
    return std::get_if<Own>(&network);
  }
};

// Creates a network whose parameters are declared but have no memory. The caller must then call
// place() or allocate() of the network's store.
std::unique_ptr<Model> declare_model(const ModelConfig& config, ElementType type = ElementType::f32,
                                     Device device = Cpu{});
// Creates a network with allocated parameters that are initialised from `seed`.
std::unique_ptr<Model> make_model(const ModelConfig& config, uint64_t seed,
                                  ElementType type = ElementType::f32, Device device = Cpu{});

}  // namespace fovea
