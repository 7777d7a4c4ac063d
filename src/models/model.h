#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/sentence_frame.h"
#include "nn/params.h"

namespace fovea {

// A batch of sentences, one after another without padding: sentence i is
// ids[offsets[i] … offsets[i + 1]).
struct TokenBatch {
  std::span<const int32_t> ids;
  std::span<const int32_t> offsets;  // sentences + 1

  int64_t sentences() const { return static_cast<int64_t>(offsets.size()) - 1; }
};

// The name of one row of one attention matrix.
struct AttentionRow {
  std::string kind;  // "encoder", "decoder", "cross"
  int64_t layer = 0, head = 0, row = 0;
};

// The decoder step whose attention aligns a target word. `writes` is the step that predicts the
// word. `reads` is the next step, which has the word as its input. `reads` aligns better in many
// deep Transformers (Chen et al.: Accurate Word Alignment Induction from Neural Machine
// Translation, EMNLP 2020, section 3).
enum class AlignmentStep { writes, reads };

// Reference alignments that guide attention in training. Word n of target_out is aligned to the
// positions keys[offsets[n] … offsets[n + 1]) of its source sentence. This range may be empty.
struct AlignmentGuidance {
  std::span<const int32_t> offsets = {};  // words of target_out + 1; empty: no alignments
  std::span<const int32_t> keys = {};
  double weight = 0;  // factor of the alignment loss; the loss of the words has 1

  explicit operator bool() const { return !offsets.empty(); }
};

// The loss of a batch under teacher forcing.
struct BatchLoss {
  Tensor loss;            // [1]: Σ over target words of the (label-smoothed) cross entropy
  Tensor log_likelihood;  // [target words]: log p(word), without smoothing
  Tensor surrogate = {};  // [1] or absent: added to the loss for the gradient, but not reported
  Tensor guided = {};     // [1] or absent: alignment loss, Σ over aligned words; only for reports
};

// A batch under teacher forcing. Sources end with the end symbol. A sentence of target_in is the
// start symbol and the words. In target_out, it is the words and the end symbol. In classification,
// target_out has one label per source instead.
struct TrainingBatch {
  TokenBatch source, target_in;
  std::span<const int32_t> target_out;
  AlignmentGuidance guidance = {};
};

enum class TiedEmbeddings { none, output, all };  // output: E_tgt = W_out; all: also E_src

// The settings that all types of network have. A reader ignores decoder_layers, tied and languages.
struct ModelShape {
  int64_t encoder_layers = 6, decoder_layers = 6;
  int64_t size = 512;
  TiedEmbeddings tied = TiedEmbeddings::all;
  int64_t max_length = 512;                    // pieces of a sentence, source or target
  double dropout = 0.1;                        // for embeddings and outputs of layers
  int64_t source_words = 0, target_words = 0;  // vocabulary sizes with special words
  std::vector<std::string> languages = {};     // codes of source and target; empty: unknown
};

// A model that can be trained. Its other capabilities are separate interfaces, which as() returns.
// Ids: 0 padding, 1 start of sentence, 2 end of sentence.
class Model {
 public:
  virtual ~Model() = default;
  Model(const Model&) = delete;
  Model& operator=(const Model&) = delete;

  // The model as an interface (Decodable, Extendable, DeviceDecodable, Attentive, Explainable,
  // LabelPredictor, Replayable) or as a derived class. Null if the model does not implement it.
  // Call this once per batch or search, because it costs a dynamic_cast.
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

  // The loss under teacher forcing. It is differentiable while a Tape is alive. Dropout is active
  // while a DropoutScope is alive. With guidance, the alignment loss is in `guided` (without its
  // weight) and in `surrogate` (with its weight). REQUIRES: guidance is absent, or the
  // configuration of the model names a guided head.
  virtual BatchLoss loss(const TrainingBatch& batch, double label_smoothing) const = 0;

 protected:
  Model(ElementType type, Device device, const ModelShape& shape)
      : store_(type, device), shape_(shape) {}
  ParameterStore store_;
  ModelShape shape_;
  SentenceFrame frame_;
};

}  // namespace fovea
