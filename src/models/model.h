#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/check.h"
#include "base/steps.h"
#include "models/what_if.h"
#include "nn/params.h"
#include "ops/steering.h"

namespace fovea {

// Sentences one after another without padding: sentence i is ids[offsets[i] … offsets[i + 1]).
struct Tokens {
  std::span<const int32_t> ids;
  std::span<const int32_t> offsets;  // sentences + 1

  int64_t sentences() const { return static_cast<int64_t>(offsets.size()) - 1; }
};

// One attention matrix of one sentence pair: rows are queries, columns what is attended to; each
// row sums to 1, but for local-p, where the Gaussian leaves less.
struct AttentionMap {
  std::string kind;  // "encoder", "decoder", "cross"
  int64_t layer = 0, head = 0;
  int64_t rows = 0, cols = 0;
  std::vector<float> weights;  // rows × cols

  // What the mechanism has of its own; a list is empty where it has no such thing.
  std::string mechanism = {};          // as in recipes: "local-p"; empty: multi-head
  std::vector<float> position = {};    // local-m, local-p: p_t of each row, counted from 1
  int64_t window = 0;                  // D: a row looks at ⌊p_t + ½⌋ ± D only
  double sigma = 0;                    // local-p: σ of the Gaussian around p_t
  std::vector<float> kappa = {};       // window: κ_t [rows, K], counted from 1
  std::vector<float> soft = {};        // hard: the distribution behind the choice, rows × cols
  std::vector<int32_t> frontier = {};  // forward: the first column that a row may look at
};

struct AttentionRow {
  std::string kind;  // as above
  int64_t layer = 0, head = 0, row = 0;
};

// Which row of attention speaks for a target word: that of the step which writes it, or the next,
// which reads it. The latter aligns better in many deep Transformers (Chen et al.: Accurate Word
// Alignment Induction from Neural Machine Translation, EMNLP 2020, section 3).
enum class AlignmentStep { writes, reads };

// Where the model should look for a word: word n of target_out comes from the positions
// keys[offsets[n] … offsets[n + 1]) of its source sentence, which may be none.
struct Guidance {
  std::span<const int32_t> offsets = {};  // words of target_out + 1; empty: nothing is known
  std::span<const int32_t> keys = {};
  double weight = 0;  // of its loss beside that of the words

  explicit operator bool() const { return !offsets.empty(); }
};

// What a batch costs under teacher forcing.
struct BatchLoss {
  Tensor loss;            // [1]: Σ over target words of the (label-smoothed) cross entropy
  Tensor log_likelihood;  // [target words]: log p(word), without smoothing
  Tensor surrogate = {};  // [1] or absent: part of the gradient, not of what is reported
  Tensor guided = {};     // [1] or absent: Σ over guided words, without its weight; for reports
};

// A batch under teacher forcing.
struct Lesson {
  Tokens source, target_in;
  std::span<const int32_t> target_out;
  Guidance guidance = {};
};

// How much padding is added to a batch, from which no gradient comes: see Note [Filling].
enum class Fill { nothing, blocks, few_sizes };

// A lesson as a model's loss reads it. Lessons with the same `sizes`, whose tensors are as long,
// are the same work for a device (Note [Replays]): only the numbers in those tensors differ.
class Prepared {
 public:
  virtual ~Prepared() = default;
  std::vector<int64_t> sizes;
  int64_t scores = 0;  // of log_likelihood
};

// What a model remembers between two steps of decoding; a row is one live hypothesis. On the
// host threads may decode with one model at once, each with a state of its own.
class DecoderState {
 public:
  virtual ~DecoderState() = default;
};

// A sequence-to-sequence model, as training and search see it. Ids: 0 padding, 1 start of
// sentence, 2 end of sentence. Sources end with the end symbol; target_in = start, words;
// target_out = words, end.
class Model {
 public:
  virtual ~Model() = default;
  Model(const Model&) = delete;
  Model& operator=(const Model&) = delete;

  ParameterStore& parameters() { return store_; }
  const ParameterStore& parameters() const { return store_; }
  // From now on parameters do not change, and are read by this model alone, without a tape: it may
  // keep them in the order that its products like, instead of in parameters().
  virtual void settle() const {}

  virtual int64_t target_words() const = 0;  // the size of a row of scores
  virtual int64_t max_length() const = 0;    // longest sentence, in pieces, of either side

  // Teacher forcing. With a Tape alive the loss can be differentiated; with a DropoutScope alive
  // the model drops out.
  virtual BatchLoss loss(const Tokens& source, const Tokens& target_in,
                         std::span<const int32_t> target_out, double label_smoothing) const = 0;
  // The same, and how far attention is from where it should be as `guided` and, with its weight, as
  // part of `surrogate`. Only for models that were configured with a head to be guided.
  virtual BatchLoss guided_loss(const Tokens& source, const Tokens& target_in,
                                std::span<const int32_t> target_out, double label_smoothing,
                                const Guidance& guidance) const;

  // The same in two halves. What the first makes of numbers on the device is made by Tensor::of();
  // the second reads nothing of the host, so that it can be replayed, and log_likelihood goes on
  // beyond the words of the target. Absent: this model's loss is in one piece.
  virtual std::unique_ptr<Prepared> prepare(const Lesson&, Fill) const { return nullptr; }
  virtual BatchLoss loss_of(const Prepared& lesson, double label_smoothing,
                            double guided_weight) const;

  // Reads the sources; the state has one row per sentence.
  virtual std::unique_ptr<DecoderState> start(const Tokens& source) const = 0;
  // Reads further sources; the state has a row for each of them behind those it had, as if it had
  // been started with all. REQUIRES: joins().
  virtual bool joins() const { return false; }
  virtual void join(DecoderState& state, const Tokens& source) const;
  // Feeds one word per row (the start symbol first) and returns the scores of the next word,
  // up to a constant per row (logits): [rows, target_words].
  virtual Tensor step(DecoderState& state, std::span<const int32_t> words) const = 0;
  // Row i of the state becomes what row parents[i] was. Rows may be repeated, dropped and put in
  // another order; their number becomes parents.size().
  virtual void reorder(DecoderState& state, std::span<const int32_t> parents) const = 0;

  // Instead of step() and reorder(), where the device chooses by itself what rows go on with: see
  // Note [Ahead]. steer() says whether it will, for a state that has just been started. The first
  // step_ahead() begins the first step, of a row per sentence. Each further one begins the next, of
  // at most `rows` rows (0: there is none to come), and returns what came of the one before.
  virtual bool steer(DecoderState&, const Steering&) const { return false; }
  virtual const Steered& step_ahead(DecoderState& state, int64_t rows) const;

  // Every attention matrix of each pair under forced decoding, pair by pair.
  virtual std::vector<std::vector<AttentionMap>> attention(const Tokens& source,
                                                           const Tokens& target_in) const = 0;
  // How one row of one of these matrices comes about, of a single pair. REQUIRES: attention() has
  // such a row. Exit::usage where a model cannot tell.
  virtual Steps explain(const Tokens& source, const Tokens& target_in,
                        const AttentionRow& row) const;
  // This model with its attention interfered with, for one source sentence at a time: it decodes,
  // scores and shows its attention, and must not outlive this one. REQUIRES: heads and places
  // exist, something is left to look at. Exit::usage where this kind of model cannot.
  virtual std::unique_ptr<Model> altered(const WhatIf& what) const;

 protected:
  explicit Model(Type type, Device device) : store_(type, device) {}
  ParameterStore store_;
};

inline BatchLoss Model::guided_loss(const Tokens&, const Tokens&, std::span<const int32_t>, double,
                                    const Guidance&) const {
  fail(Exit::usage, "this kind of model has no attention that alignments can guide");
}

inline Steps Model::explain(const Tokens&, const Tokens&, const AttentionRow&) const {
  fail(Exit::usage, "this kind of model does not tell its attention step by step");
}

inline std::unique_ptr<Model> Model::altered(const WhatIf&) const {
  fail(Exit::usage, "the attention of this kind of model cannot be changed");
}

inline void Model::join(DecoderState&, const Tokens&) const {
  fail(Exit::unexpected, "no sentence can join those that this kind of model decodes");
}

inline const Steered& Model::step_ahead(DecoderState&, int64_t) const {
  fail(Exit::unexpected, "this kind of model does not choose by itself");
}

inline BatchLoss Model::loss_of(const Prepared&, double, double) const {
  fail(Exit::unexpected, "this kind of model prepares no lessons");
}

}  // namespace fovea
