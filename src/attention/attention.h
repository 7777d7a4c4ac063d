#pragma once

#include <memory>
#include <string>

#include "attention/steps.h"
#include "nn/params.h"
#include "ops/lookup.h"
#include "ops/matmul.h"

namespace fovea {

// What is attended to: the annotations h_1 … h_S of every source sentence, one after another.
struct Memory {
  Tensor h;     // [words, D]
  Tensor keys;  // [words, A]: what the score computes of them once; absent where it needs nothing
  Packing sentences;
  Tensor W_s{};      // concat: the columns of its W that meet s, cut out once
  Tensor summary{};  // static: u [sentences, D]
  Tensor veto{};     // [sentences, longest]: added to scores; absent: every word may be looked at
};

// What earlier steps left behind. Row i belongs to decoder row i; absent before the first step and
// where a mechanism has no use for it.
struct Before {
  int64_t steps = 0;  // t − 1
  Tensor weights{};   // α_{t−1}          forward; α of all steps: static
  Tensor covered{};   // Σ_{u<t} α_u      forward
  Tensor kappa{};     // κ_{t−1}          window
  Tensor context{};   // c of all steps   static
};

// `before` for fewer or other rows: the first `count` of them, as when sentences of a batch end, or
// those listed, as when search goes on with some hypotheses. rows is i32.
Before first_rows(const Before& before, int64_t count);
Before chosen_rows(const Before& before, const Tensor& rows);

// What every mechanism answers with. Nothing is kept in the mechanism itself.
struct Attended {
  Tensor context;  // c_t [rows, D]
  Tensor weights;  // α_t [rows, longest sentence], 0 beyond a sentence's end
  Before now;      // what the next step will find as `before`

  Tensor soft{};                   // hard: the distribution behind the choice; local-p: softmax
  Tensor position{};               // local-m, local-p: p_t [rows], counted from 1
  Tensor log_choice{}, entropy{};  // hard-sample: log p(choice) and H of the distribution [rows, 1]
};

// Who asks at one step: row i of s attends to source sentence `sentence[i]`.
struct Query {
  Tensor s;         // [rows, state]
  Tensor sentence;  // i32 [rows]
};

// e_tj = score(s_t, h_j): section 3.1 of Luong 2015 and its kin.
class Score {
 public:
  virtual ~Score() = default;
  virtual Tensor keys(const Tensor& h) const { return h; }  // [words, A]
  virtual Tensor query_weights() const { return {}; }       // Memory::W_s
  virtual Tensor operator()(const Tensor& s, const Memory& memory, const Lookup& look) const = 0;
  virtual int64_t reach() const { return -1; }  // positions it can score; −1: all

  // How e_tj is written, and what stands between s_t, h_j and it. s is [1, state], the memory one
  // sentence.
  virtual std::string formula() const { return "e_tj = score(s_t, h_j)"; }
  virtual std::vector<std::string> factors() const { return {}; }  // Step::factors of e_tj
  virtual void explain(const Tensor& /*s*/, const Memory&, Steps&) const {}
};

// Where the decoder looks.
class Attention {
 public:
  virtual ~Attention() = default;
  virtual Memory remember(const Tensor& h, const Packing& sentences) const = 0;
  virtual Attended attend(const Query& query, const Memory& memory, const Before& before) const = 0;

  // The steps from one query to its weights, which `attended` are, in a memory of one sentence.
  // Where a mechanism has nothing more to tell, these are the weights alone.
  virtual void explain(const Query& query, const Memory& memory, const Before& before,
                       const Attended& attended, Steps& steps) const;
};

// From scores to the one word that hard attention chooses: attended.soft, then the weights.
void explain_choice(const Attended& attended, Steps& steps);

// A mechanism that asks a score.
class ScoredAttention : public Attention {
 public:
  explicit ScoredAttention(std::unique_ptr<Score> score) : score_(std::move(score)) {}
  Memory remember(const Tensor& h, const Packing& sentences) const override {
    round_along(h);
    const Tensor keys = score_->keys(h);
    round_along(keys);
    return {h, keys, sentences, score_->query_weights()};
  }
  const Score& score() const { return *score_; }
  // e_t, with what the memory has against some words.
  Tensor scores(const Tensor& s, const Memory& memory, const Lookup& look) const;

  // The state, what the score makes of it, the scores, then explain_focus().
  void explain(const Query& query, const Memory& memory, const Before& before,
               const Attended& attended, Steps& steps) const override;
  // From scores e to weights.
  virtual void explain_focus(const Row& e, const Before& before, const Attended& attended,
                             Steps& steps) const;

 private:
  std::unique_ptr<Score> score_;
};

}  // namespace fovea
