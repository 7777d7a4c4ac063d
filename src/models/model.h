#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/sentence_frame.h"
#include "nn/params.h"

namespace fovea {

// A batch of sentences, one after another without padding. Sentence i is ids[offsets[i] … offsets[i
// + 1]).
struct TokenBatch {
  std::span<const int32_t> ids;
  std::span<const int32_t> offsets;  // number of sentences + 1

  int64_t sentences() const { return static_cast<int64_t>(offsets.size()) - 1; }
};

// Identifies one row of one attention matrix.
struct AttentionRow {
  std::string kind;  // "encoder", "decoder", "cross"
  int64_t layer = 0, head = 0, row = 0;
};

// Which decoder step aligns a target word by its attention. With `writes`, it is the step that
// predicts the word. With `reads`, it is the next step, whose input is the word. In many deep
// Transformers, `reads` aligns better (Chen et al.: Accurate Word Alignment Induction from Neural
// Machine Translation, EMNLP 2020, section 3).
enum class AlignmentStep { writes, reads };

// Reference alignments that guide attention in training. Word n of target_out is aligned to the
// positions keys[offsets[n] … offsets[n + 1]) of its source sentence, which may be none.
struct AlignmentGuidance {
  std::span<const int32_t> offsets = {};  // words of target_out + 1 numbers; empty: no alignments
  std::span<const int32_t> keys = {};
  double weight = 0;  // factor of the alignment loss (the loss of the words has factor 1)

  explicit operator bool() const { return !offsets.empty(); }
};

// The loss of a batch under teacher forcing: the decoder reads the reference words.
struct BatchLoss {
  Tensor loss;            // [1]: Σ over target words of the (label-smoothed) cross entropy
  Tensor log_likelihood;  // [target words]: log p(word), without smoothing
  Tensor surrogate = {};  // [1] or absent: not reported, but the gradient includes it
  Tensor guided = {};     // [1] or absent: alignment loss of all aligned words, only reported
};

// A batch under teacher forcing. Each source ends with the end symbol. A sentence of target_in is
// the start symbol and then the words. In target_out, it is the words and then the end symbol. For
// classification, target_out has one label per source instead.
struct TrainingBatch {
  TokenBatch source, target_in;
  std::span<const int32_t> target_out;
  AlignmentGuidance guidance = {};
};

enum class TiedEmbeddings { none, output, all };  // output: E_tgt = W_out; all: E_src, too

// The settings that all types of network have. A text classifier ignores decoder_layers, tied and
// languages.
struct ModelShape {
  int64_t encoder_layers = 6, decoder_layers = 6;
  int64_t size = 512;
  TiedEmbeddings tied = TiedEmbeddings::all;
  int64_t max_length = 512;                    // maximum pieces of a source or a target
  double dropout = 0.1;                        // for embeddings and outputs of layers
  int64_t source_words = 0, target_words = 0;  // sizes of the vocabularies, with special words
  std::vector<std::string> languages = {};     // codes of source and target; empty: unknown
};

// A model that can be trained. Each of its other capabilities is a separate interface, which as()
// returns. Word ids: 0 padding, 1 start of sentence, 2 end of sentence.
class Model {
 public:
  virtual ~Model() = default;
  Model(const Model&) = delete;
  Model& operator=(const Model&) = delete;

  // Returns the model as an interface (Decodable, Extendable, DeviceDecodable, Attentive,
  // Explainable, LabelPredictor, Replayable) or as a derived class. If the model does not implement
  // it, returns null. The call costs a dynamic_cast, so call it once per batch or search.
  template <class Capability>
  const Capability* as() const {
    return dynamic_cast<const Capability*>(this);
  }

  ParameterStore& parameters() { return store_; }
  const ParameterStore& parameters() const { return store_; }
  const ModelShape& shape() const { return shape_; }
  int64_t target_words() const { return shape_.target_words; }
  int64_t max_length() const { return shape_.max_length; }
  // The pieces around each sentence. Sentences that the model receives already have them.
  const SentenceFrame& frame() const { return frame_; }
  void set_frame(SentenceFrame frame) { frame_ = std::move(frame); }
  // Prepares the model for inference only. REQUIRES: from now on the parameters do not change, only
  // this model reads them, and there is no tape. The model may move weights from parameters() to
  // copies in the memory layout that its products prefer.
  virtual void freeze_for_inference() const {}

  // Computes the loss under teacher forcing. If a Tape exists, the loss is differentiable. If a
  // DropoutScope exists, dropout is active. If the batch has guidance, `guided` is the alignment
  // loss, and `surrogate` is the alignment loss times its weight. REQUIRES: there is no guidance,
  // or the model's configuration names a guided head.
  virtual BatchLoss loss(const TrainingBatch& batch, double label_smoothing) const = 0;

 protected:
  Model(ElementType type, Device device, const ModelShape& shape)
      : store_(type, device), shape_(shape) {}
  ParameterStore store_;
  ModelShape shape_;
  SentenceFrame frame_;
};

}  // namespace fovea
