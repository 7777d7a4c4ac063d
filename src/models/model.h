#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "attention/attention_map.h"
#include "base/check.h"
#include "base/computation_steps.h"
#include "cache/device_beam.h"
#include "models/intervention.h"
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
  std::string kind;  // as above
  int64_t layer = 0, head = 0, row = 0;
};

// The decoder step whose attention aligns a target word: the step that predicts the word (writes),
// or the next step, whose input it is (reads). The latter aligns better in many deep Transformers
// (Chen et al.: Accurate Word Alignment Induction from Neural Machine Translation, EMNLP 2020,
// section 3).
enum class AlignmentStep { writes, reads };

// Reference alignments that guide attention in training. Word n of target_out is aligned to the
// positions keys[offsets[n] … offsets[n + 1]) of its source sentence, which may be none.
struct AlignmentGuidance {
  std::span<const int32_t> offsets = {};  // words of target_out + 1; empty: no alignments
  std::span<const int32_t> keys = {};
  double weight = 0;  // of the alignment loss, relative to the loss of the words

  explicit operator bool() const { return !offsets.empty(); }
};

// The loss of a batch under teacher forcing.
struct BatchLoss {
  Tensor loss;            // [1]: Σ over target words of the (label-smoothed) cross entropy
  Tensor log_likelihood;  // [target words]: log p(word), without smoothing
  Tensor surrogate = {};  // [1] or absent: added to the loss for the gradient, but not reported
  Tensor guided = {};     // [1] or absent: Σ over aligned words, unweighted; only for reports
};

// A batch under teacher forcing.
struct TrainingBatch {
  TokenBatch source, target_in;
  std::span<const int32_t> target_out;
  AlignmentGuidance guidance = {};
};

// The padding that is added to a batch. It contributes no gradient: see Note [Filling].
enum class BatchPadding { nothing, blocks, few_sizes };

// A training batch in the form that a model's loss reads. Batches with equal `sizes` and tensors of
// equal length need the same kernel calls (Note [Replays]); only the numbers in the tensors differ.
class PreparedBatch {
 public:
  virtual ~PreparedBatch() = default;
  std::vector<int64_t> sizes;
  int64_t scores = 0;  // length of log_likelihood
};

// The state of a model between two decoding steps; a row is one active hypothesis. On the CPU,
// several threads may decode with one model at the same time if each has its own state.
class DecoderState {
 public:
  virtual ~DecoderState() = default;
};

// A sequence-to-sequence model: the interface for training and search. Ids: 0 padding, 1 start of
// sentence, 2 end of sentence. Sources end with the end symbol; target_in = start, words;
// target_out = words, end.
class Model {
 public:
  virtual ~Model() = default;
  Model(const Model&) = delete;
  Model& operator=(const Model&) = delete;

  ParameterStore& parameters() { return store_; }
  const ParameterStore& parameters() const { return store_; }
  // Prepares for inference only: from now on the parameters do not change, only this model reads
  // them, and there is no tape. The model may move its weights from parameters() to copies in the
  // memory layout that its products prefer.
  virtual void freeze_for_inference() const {}

  virtual int64_t target_words() const = 0;  // the length of a row of scores
  virtual int64_t max_length() const = 0;    // longest sentence in pieces, on either side

  // The loss under teacher forcing. It is differentiable while a Tape is alive. Dropout is active
  // while a DropoutScope is alive.
  virtual BatchLoss loss(const TokenBatch& source, const TokenBatch& target_in,
                         std::span<const int32_t> target_out, double label_smoothing) const = 0;
  // The same with an alignment loss: unweighted as `guided`, and weighted as part of `surrogate`.
  // Only for models whose configuration names a guided head.
  virtual BatchLoss guided_loss(const TokenBatch& source, const TokenBatch& target_in,
                                std::span<const int32_t> target_out, double label_smoothing,
                                const AlignmentGuidance& guidance) const;

  // The same in two parts. prepare() creates all device tensors with Tensor::of(). loss_of() reads
  // no host memory, so it can be replayed as a CUDA graph. Its log_likelihood is longer than the
  // target if the batch was padded. prepare() returns null if the model does not support this.
  virtual std::unique_ptr<PreparedBatch> prepare(const TrainingBatch&, BatchPadding) const {
    return nullptr;
  }
  virtual BatchLoss loss_of(const PreparedBatch& batch, double label_smoothing,
                            double guided_weight) const;

  // Encodes the sources. The state has one row per sentence.
  virtual std::unique_ptr<DecoderState> start(const TokenBatch& source) const = 0;
  // join() encodes further sources and appends a row for each of them to the state. The result is
  // as if start() had received all sources. REQUIRES: can_extend().
  virtual bool can_extend() const { return false; }
  virtual void join(DecoderState& state, const TokenBatch& source) const;
  // Feeds one word per row (the start symbol first) and returns the scores of the next word,
  // up to a constant per row (logits): [rows, target_words].
  virtual Tensor step(DecoderState& state, std::span<const int32_t> words) const = 0;
  // Replaces the rows of the state: the new row i is the old row parents[i]. Rows may be repeated,
  // dropped and reordered. Their new number is parents.size().
  virtual void reorder(DecoderState& state, std::span<const int32_t> parents) const = 0;

  // Search on the device, instead of step() and reorder(): the device selects the hypotheses
  // itself, see Note [Ahead]. start_device_search() requires a state without steps and returns
  // whether the device supports the search. The first device_step() launches the first step, with
  // one row per sentence. Each further call launches the next step, with at most `rows` rows (0: no
  // further step), and returns the result of the step before.
  virtual bool start_device_search(DecoderState&, const BeamRules&) const { return false; }
  virtual const BeamStepResult& device_step(DecoderState& state, int64_t rows) const;

  // All attention matrices of each pair under forced decoding: a list per pair.
  virtual std::vector<std::vector<AttentionMap>> attention(const TokenBatch& source,
                                                           const TokenBatch& target_in) const = 0;
  // The step-by-step explanation of one row of these matrices, for a single pair. REQUIRES:
  // attention() has such a row. Fails with ExitCode::usage if the model does not support it.
  virtual ComputationSteps explain(const TokenBatch& source, const TokenBatch& target_in,
                                   const AttentionRow& row) const;
  // A model with the parameters of this one and an intervention on its attention weights. It
  // decodes, scores and returns its attention, for one source sentence at a time. This model must
  // outlive it. REQUIRES: the named heads and positions exist, and at least one position is not
  // masked. Fails with ExitCode::usage if the model does not support interventions.
  virtual std::unique_ptr<Model> with_intervention(const WhatIf& intervention) const;

 protected:
  explicit Model(ElementType type, Device device) : store_(type, device) {}
  ParameterStore store_;
};

inline BatchLoss Model::guided_loss(const TokenBatch&, const TokenBatch&, std::span<const int32_t>,
                                    double, const AlignmentGuidance&) const {
  fail(ExitCode::usage, "this type of model has no attention that alignments can guide");
}

inline ComputationSteps Model::explain(const TokenBatch&, const TokenBatch&,
                                       const AttentionRow&) const {
  fail(ExitCode::usage, "this type of model has no step-by-step explanation of its attention");
}

inline std::unique_ptr<Model> Model::with_intervention(const WhatIf&) const {
  fail(ExitCode::usage, "this type of model does not support interventions on its attention");
}

inline void Model::join(DecoderState&, const TokenBatch&) const {
  fail(ExitCode::unexpected, "this type of model cannot extend a running batch");
}

inline const BeamStepResult& Model::device_step(DecoderState&, int64_t) const {
  fail(ExitCode::unexpected, "this type of model has no search on the device");
}

inline BatchLoss Model::loss_of(const PreparedBatch&, double, double) const {
  fail(ExitCode::unexpected, "this type of model has no prepared batches");
}

}  // namespace fovea
