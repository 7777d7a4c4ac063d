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
enum class Decoder { bahdanau, luong };  // attends before the step of its state, or after it
enum class Tied { none, output, all };   // output: E_tgt and W_out; all: E_src as well
enum class Context { text, sentence };   // what an encoder of documents reads at a time
enum class ReaderQuery { learned, summary, question };  // what a reader asks its text with

// What `model:` of a recipe and config.yml of a model directory describe. Keys that belong to the
// other type of network are refused.
struct ModelConfig {
  std::string type = "transformer";
  int64_t encoder_layers = 6, decoder_layers = 6;
  int64_t size = 512;
  Tied tied = Tied::all;
  int64_t max_length = 512;
  double dropout = 0.1;  // of embeddings and of what each layer gives to the next
  int64_t source_words = 0, target_words = 0;  // sizes of the vocabularies, specials included
  std::vector<std::string> languages = {};     // codes of source and target; empty: not told

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
  // The head of the decoder that was trained on given alignments; −1: none was.
  int64_t alignment_layer = -1, alignment_head = -1;
  AlignmentStep alignment_step = AlignmentStep::writes;

  // Recurrent, and where it says so readers as well
  Cell cell = Cell::gru;
  Decoder decoder = Decoder::bahdanau;
  bool bidirectional = true;
  bool input_feeding = true;                             // luong
  int64_t embedding = 0, encoder_size = 0, readout = 0;  // 0: see below
  AttentionConfig attention;

  // Reader; cell, bidirectional, embedding, encoder_size and attention as above
  ReaderQuery query = ReaderQuery::summary;
  Context context = Context::text;

  void describe(Settings& s);
  bool aligns() const { return alignment_layer >= 0; }
  // Throws Error(code) for combinations that cannot be built, with the reason.
  void check(Exit code) const;

  // Recurrent: what 0 stands for, and what follows.
  int64_t embedding_size() const { return embedding > 0 ? embedding : size; }
  int64_t annotation_size() const {  // of h_j
    return (encoder_size > 0 ? encoder_size : size) * (bidirectional ? 2 : 1);
  }
  int64_t readout_size() const {
    if (!attention.attends()) return size;  // the state itself
    return readout > 0 ? readout : tied == Tied::none ? size : embedding_size();
  }
  AttentionSizes attention_sizes() const {
    return {size, annotation_size(), max_length,
            bidirectional ? Summary::both_ends : Summary::last_word};
  }
};

// The network with its parameters declared only: place() or allocate() of its store must follow.
std::unique_ptr<Model> declare_model(const ModelConfig& config, Type type = Type::f32,
                                     Device device = Cpu{});
// The network with its parameters allocated and set from `seed`.
std::unique_ptr<Model> make_model(const ModelConfig& config, uint64_t seed, Type type = Type::f32,
                                  Device device = Cpu{});

}  // namespace fovea
