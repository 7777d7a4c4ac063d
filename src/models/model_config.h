#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "attention/registry.h"
#include "base/settings.h"
#include "models/model.h"
#include "ops/elementwise.h"
#include "ops/recurrent.h"

namespace fovea {

enum class NormPlace { post, pre };
enum class Positions { interleaved, half, half_m1, learned, none };
enum class DecoderForm { bahdanau, luong };       // attention before or after the recurrent step
enum class TiedEmbeddings { none, output, all };  // output: E_tgt and W_out; all: also E_src
enum class EncoderContext { text, sentence };     // the unit that a document encoder reads at once
enum class ReaderQuery { learned, summary, question };  // the query of a reader

// The configuration of a model: `model:` of a recipe, and config.yml of a model directory. Keys of
// other types of network are rejected.
struct ModelConfig {
  std::string type = "transformer";
  int64_t encoder_layers = 6, decoder_layers = 6;
  int64_t size = 512;
  TiedEmbeddings tied = TiedEmbeddings::all;
  int64_t max_length = 512;
  double dropout = 0.1;                        // of embeddings and of the outputs of layers
  int64_t source_words = 0, target_words = 0;  // sizes of the vocabularies, specials included
  std::vector<std::string> languages = {};     // codes of source and target; empty: unknown

  // Transformer
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

  // Recurrent; the reader section names the keys that readers share
  Cell cell = Cell::gru;
  DecoderForm decoder = DecoderForm::bahdanau;
  bool bidirectional = true;
  bool input_feeding = true;                             // luong
  int64_t embedding = 0, encoder_size = 0, readout = 0;  // 0: see the functions below
  AttentionConfig attention;

  // Reader; cell, bidirectional, embedding, encoder_size and attention as above
  ReaderQuery query = ReaderQuery::summary;
  EncoderContext context = EncoderContext::text;

  void describe(Settings& s);
  bool aligns() const { return alignment_layer >= 0; }
  // Throws Error(code) with the reason if the combination is impossible.
  void check(ExitCode code) const;

  // Recurrent: the sizes that result from the settings, with 0 replaced by its meaning.
  int64_t embedding_size() const { return embedding > 0 ? embedding : size; }
  int64_t annotation_size() const {  // of h_j
    return (encoder_size > 0 ? encoder_size : size) * (bidirectional ? 2 : 1);
  }
  int64_t readout_size() const {
    if (!attention.attends()) return size;  // the state itself
    return readout > 0 ? readout : tied == TiedEmbeddings::none ? size : embedding_size();
  }
  AttentionSizes attention_sizes() const {
    return {size, annotation_size(), max_length,
            bidirectional ? SummaryStates::both_ends : SummaryStates::last_word};
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
