#pragma once

#include <initializer_list>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "attention/attention_map.h"
#include "attention/attention_steps.h"
#include "nn/params.h"
#include "ops/matmul.h"
#include "ops/ragged_attention.h"

namespace fovea {

// The source side of attention: the annotations (encoder states) h_1 … h_S of all source sentences,
// one sentence after another, and values that are computed from them once per batch.
struct SourceMemory {
  Tensor h;     // [words, D]
  Tensor keys;  // [words, A] from ScoreFunction::keys(); absent if there is no score
  SentenceOffsets sentences;
  Tensor W_s{};      // only for the score concat: the columns of W that multiply s
  Tensor summary{};  // only for static attention: the summaries u [sentences, D]
  Tensor veto{};     // [sentences, longest]: added to scores to exclude words; may be absent
};

// A list of a few named tensors. The names are string literals.
class NamedTensors {
 public:
  NamedTensors() = default;
  NamedTensors(std::initializer_list<std::pair<const char*, Tensor>> tensors) : tensors_(tensors) {}

  // The tensor of this name. If there is none, an absent tensor.
  Tensor operator[](std::string_view name) const {
    for (const auto& [key, tensor] : tensors_)
      if (name == key) return tensor;
    return {};
  }
  // A copy of the list in which select(tensor) replaces each tensor.
  template <class Select>
  NamedTensors selected(Select select) const {
    NamedTensors result = *this;
    for (auto& [key, tensor] : result.tensors_) tensor = select(tensor);
    return result;
  }

 private:
  std::vector<std::pair<const char*, Tensor>> tensors_;
};

// The state that a mechanism carries from one decoder step to the next. Each mechanism chooses the
// names of the tensors in it. Row i of a tensor belongs to row i of the decoder. Before the first
// step, a tensor is absent.
struct AttentionState {
  int64_t steps = 0;  // number of earlier steps, t − 1
  NamedTensors tensors{};

  Tensor operator[](std::string_view name) const { return tensors[name]; }
};

// Both return a state with some rows of `previous`. first_rows() keeps the first `count` rows,
// because the other sentences of the batch have ended. chosen_rows() takes the rows that the list
// `rows` (i32) names, because a search continues only some hypotheses.
AttentionState first_rows(const AttentionState& previous, int64_t count);
AttentionState chosen_rows(const AttentionState& previous, const Tensor& rows);

// The result of one attention step. It includes the new state, because the mechanism itself stores
// none.
struct AttentionResult {
  Tensor context;      // c_t [rows, D]
  Tensor weights;      // α_t [rows, longest sentence], 0 beyond the end of a sentence
  AttentionState now;  // the argument `previous` of the next step

  NamedTensors shown{};            // values for series() and explain(), one row per query
  Tensor log_choice{}, entropy{};  // hard-sample: log p(choice), entropy [rows, 1]
};

// The queries of one step: row i of s attends to source sentence `sentence[i]`.
struct AttentionQuery {
  Tensor s;         // [rows, state]
  Tensor sentence;  // i32 [rows]
};

// A function that compares decoder states and annotations: e_tj = score(s_t, h_j). Luong 2015,
// section 3.1.
class ScoreFunction {
 public:
  virtual ~ScoreFunction() = default;
  virtual Tensor keys(const Tensor& h) const { return h; }  // [words, A]
  virtual Tensor query_weights() const { return {}; }       // SourceMemory::W_s
  virtual Tensor operator()(const Tensor& s, const SourceMemory& memory,
                            const RaggedQueries& look) const = 0;
  virtual int64_t reach() const { return -1; }  // number of first positions with a score; −1: all

  // For step-by-step explanations: the formula of e_tj, its ComputationStep::factors, and the
  // computation steps from s_t and h_j to e_tj. s is [1, state]; the memory has one sentence.
  virtual std::string formula() const { return "e_tj = score(s_t, h_j)"; }
  virtual std::vector<std::string> factors() const {
    return {};
  }  // ComputationStep::factors of e_tj
  virtual void explain(const Tensor& /*s*/, const SourceMemory&, ComputationSteps&) const {}
};

// The names of the weights and values in explanations of c_t = Σ_j weight · value.
struct ContextNames {
  std::string weight = "α_tj", value = "h_j", values = "the encoder states h_j";
};

// An attention mechanism: computes weights over the source words, and from them a context vector.
// The object does not change after construction; AttentionState carries values from step to step.
class Attention {
 public:
  virtual ~Attention() = default;
  virtual SourceMemory remember(const Tensor& h, const SentenceOffsets& sentences) const = 0;
  virtual AttentionResult attend(const AttentionQuery& query, const SourceMemory& memory,
                                 const AttentionState& previous) const = 0;
  // The state before the first step. Its row i belongs to source sentence `sentence[i]`.
  virtual AttentionState start(const SourceMemory&, const Tensor& /*sentence*/) const { return {}; }

  // The series (numbers beside the weights) that pictures show. If a series is of_rows(), its
  // values are in AttentionResult::shown, under its name. Otherwise the returned series has its
  // values.
  virtual std::vector<NamedSeries> series() const { return {}; }
  // The weights as pictures show them. The result has no gradient.
  virtual Tensor drawn_weights(const Tensor& weights) const { return weights; }

  // These three functions are for interventions, which replace weights. context() returns the
  // context for the given weights. reweighted() returns the state after a step whose weights were
  // replaced. keeps_weight() says what happens if the intervention leaves no word with a weight
  // above 0. If it returns true, the last unmasked word gets weight 1, otherwise all weights stay
  // 0.
  virtual Tensor context(const Tensor& weights, const SourceMemory& memory,
                         const RaggedQueries& look) const {
    return weighted_sum(weights, memory.h, look);
  }
  virtual AttentionState reweighted(const AttentionState& /*previous*/,
                                    const AttentionResult& result) const {
    return result.now;
  }
  virtual bool keeps_weight() const { return false; }

  // Appends the computation steps from one query to the weights in `result`. The memory has one
  // sentence. The default appends only the weights.
  virtual void explain(const AttentionQuery& query, const SourceMemory& memory,
                       const AttentionState& previous, const AttentionResult& result,
                       ComputationSteps& steps) const;
  virtual ContextNames context_names() const { return {}; }
};

// For hard attention: choice_series() returns its series. explain_choice() appends the steps from
// the scores to the chosen word: the distribution shown["soft"] and the weights.
std::vector<NamedSeries> choice_series();
void explain_choice(const AttentionResult& result, ComputationSteps& steps);

// An attention mechanism that computes its weights from a score function.
class ScoredAttention : public Attention {
 public:
  explicit ScoredAttention(std::unique_ptr<ScoreFunction> score) : score_(std::move(score)) {}
  SourceMemory remember(const Tensor& h, const SentenceOffsets& sentences) const override {
    round_along(h);
    const Tensor keys = score_->keys(h);
    round_along(keys);
    return {h, keys, sentences, score_->query_weights()};
  }
  const ScoreFunction& score() const { return *score_; }
  // The scores e_t. If the memory has a veto, it is added.
  Tensor scores(const Tensor& s, const SourceMemory& memory, const RaggedQueries& look) const;

  // Appends the state, the steps of the score function, the scores, and the steps of
  // explain_focus().
  void explain(const AttentionQuery& query, const SourceMemory& memory,
               const AttentionState& previous, const AttentionResult& result,
               ComputationSteps& steps) const override;
  // Appends the steps from the scores e to the weights.
  virtual void explain_focus(const DoubleRow& e, const AttentionState& previous,
                             const AttentionResult& result, ComputationSteps& steps) const;

 private:
  std::unique_ptr<ScoreFunction> score_;
};

}  // namespace fovea
