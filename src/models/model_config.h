#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <variant>
#include <vector>

#include "attention/registry.h"
#include "base/settings.h"
#include "models/model.h"
#include "nn/recurrent_layers.h"
#include "ops/elementwise.h"

namespace fovea {

enum class NormPlace { post, pre };
enum class Positions { interleaved, half, half_m1, learned, none };
enum class DecoderForm { bahdanau, luong };    // attention before or after the recurrent step
enum class EncoderContext { text, sentence };  // the unit that a document encoder reads at once
enum class ReaderQuery { learned, summary, question };  // the query of a reader

// The settings of one type of network. check() throws Error(code) with the reason if the
// combination is impossible.
struct TransformerConfig {
  static constexpr const char* kName = "transformer";
  int64_t heads = 8, inner = 2048;
  NormPlace norm = NormPlace::post;
  bool final_norm = false;  // a norm after each stack; pre-norm always has it
  Function activation = Function::relu;
  Positions positions = Positions::interleaved;
  bool scale_embeddings = true;  // × √size, as published
  bool output_bias = false;
  double attention_dropout = 0;   // of attention weights
  double activation_dropout = 0;  // inside the feed-forward layer
  // The decoder head that was trained on given alignments; −1: none.
  int64_t alignment_layer = -1, alignment_head = -1;
  AlignmentStep alignment_step = AlignmentStep::writes;

  void describe(Settings& s);
  void check(const ModelShape& m, ExitCode code) const;
};

// The settings that recurrent models and readers share.
struct EncoderConfig {
  Cell cell = Cell::gru;
  bool bidirectional = true;
  int64_t embedding = 0, encoder_size = 0;  // 0: see the functions below
  AttentionConfig attention;

  void describe(Settings& s);
  // The sizes that result from the settings, with 0 replaced by its meaning.
  int64_t embedding_size(const ModelShape& m) const { return embedding > 0 ? embedding : m.size; }
  int64_t annotation_size(const ModelShape& m) const {  // of h_j
    return (encoder_size > 0 ? encoder_size : m.size) * (bidirectional ? 2 : 1);
  }
  RecurrentStack::Sizes sizes(const ModelShape& m) const;
};

struct RecurrentConfig : EncoderConfig {
  static constexpr const char* kName = "recurrent";
  DecoderForm decoder = DecoderForm::bahdanau;
  bool input_feeding = true;  // luong
  int64_t readout = 0;        // 0: see readout_size()

  void describe(Settings& s);  // without the settings of EncoderConfig
  void check(const ModelShape& m, ExitCode code) const;
  int64_t readout_size(const ModelShape& m) const {
    if (!attention.attends()) return m.size;  // the state itself
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

  void describe(Settings& s);
  void check(ExitCode code) const;
  const char* type() const {  // as in recipes
    return std::visit([](const auto& own) { return own.kName; }, network);
  }
  // The settings of the network if it is of this type, else null.
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
