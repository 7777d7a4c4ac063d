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
enum class DecoderLayerType { attention, ssru };  // what reads the target words before a word
// bahdanau: attention precedes the recurrent step of the decoder; luong: it follows.
enum class DecoderForm { bahdanau, luong };
// The input of one encoder run in a reader: the whole document, or each of its sentences.
enum class EncoderContext { text, sentence };
// The query of a reader's attention: a parameter, the summary of the text, or that of the question.
enum class ReaderQuery { learned, summary, question };

// The settings of one type of network. check() throws Error(code) with the reason if the
// combination is impossible.
struct TransformerConfig {
  static constexpr const char* kName = "transformer";
  int64_t heads = 8, inner = 2048;
  NormPlace norm = NormPlace::post;
  NormType norm_type = NormType::layer;
  double norm_epsilon = kNormEpsilon;
  bool final_norm = false;      // a norm after each stack; NormPlace::pre always has it
  bool embedding_norm = false;  // a norm after embeddings and positions
  int64_t head_size = 0;        // d_k; 0: size / heads
  Function activation = Function::relu;
  bool gated = false;  // the activations are multiplied by a second projection
  DecoderLayerType decoder_layer = DecoderLayerType::attention;
  Positions positions = Positions::interleaved;
  int64_t first_position = 0;  // number of the first word's position (sinusoids)
  int64_t relative_buckets = 32, relative_distance = 128;  // of relative positions
  bool scale_embeddings = true;                            // multiply them by √size, as published
  bool output_bias = false;
  double attention_dropout = 0;   // for attention weights
  double activation_dropout = 0;  // inside the feed-forward layer
  // The cross-attention head that is trained on reference alignments; −1: none.
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

// The settings that recurrent models and readers share.
struct EncoderConfig {
  Cell cell = Cell::gru;
  bool bidirectional = true;
  int64_t embedding = 0, encoder_size = 0;  // 0: default, see the functions below
  AttentionConfig attention;

  void describe(Settings& s);
  // The sizes that result from the settings; a 0 is replaced by the default.
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
    if (!attention.attends()) return m.size;  // the readout is the decoder state
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

// The configuration of a model: `model:` of a recipe, and config.yml of a model directory. Keys of
// other types of network are rejected.
struct ModelConfig : ModelShape {
  std::variant<TransformerConfig, RecurrentConfig, ReaderConfig> network;
  GenerationConfig generation = {};  // a reader does not use it

  void describe(Settings& s);
  void check(ExitCode code) const;
  const char* type() const {  // the name of the type in recipes
    return std::visit([](const auto& own) { return own.kName; }, network);
  }
  // The settings of the network if they have the type Own, else null.
  template <class Own>
  const Own* as() const {
    return std::get_if<Own>(&network);
  }
};

// Creates a network whose parameters are declared but have no memory. The caller must call place()
// or allocate() of its store.
std::unique_ptr<Model> declare_model(const ModelConfig& config, ElementType type = ElementType::f32,
                                     Device device = Cpu{});
// Creates a network with allocated parameters that are initialised from `seed`.
std::unique_ptr<Model> make_model(const ModelConfig& config, uint64_t seed,
                                  ElementType type = ElementType::f32, Device device = Cpu{});

}  // namespace fovea
