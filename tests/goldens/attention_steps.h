#pragma once

#include "attention/registry.h"
#include "goldens/case.h"

namespace fovea::goldens {

// A runner that feeds a golden attention case step by step. At step t the rows are the sentences
// that have a t-th target word. The attention state of earlier steps is passed on with them.
class Steps {
 public:
  // `kind` and `score` are names as in recipes. All sizes come from the case.
  Steps(Case& c, const std::string& kind, const std::string& score);

  // Runs all steps.
  void run();

  template <class Kind>
  const Kind& attention() const {
    return dynamic_cast<const Kind&>(*attention_);
  }
  const std::vector<AttentionResult>& all() const { return at_; }
  const std::vector<AttentionState>& before() const { return before_; }
  const SourceMemory& memory() const { return memory_; }
  const Tensor& s() const { return s_; }
  RaggedQueries ragged_queries(size_t step) const { return {memory_.sentences, sentences_[step]}; }

  // The rows of all steps, in the order of the sentences' words: [target words, …].
  Tensor joined(const std::vector<Tensor>& steps) const;
  Tensor joined(Tensor AttentionResult::*part) const;
  Tensor shown(const char* name) const;  // joined
  // e of every target word, computed by the score function.
  Tensor scores() const;

  // Compares the gradients of h, s and the parameters.
  void expect_gradients() const;

 private:
  Case& c_;
  ParameterStore store_;
  std::unique_ptr<Attention> attention_;
  SentenceOffsets target_;
  Tensor h_, s_;  // packed, in the order of sentences
  SourceMemory memory_;
  std::vector<Tensor> rows_, sentences_;  // by step: rows of s_, sentences
  std::vector<AttentionResult> at_;
  std::vector<AttentionState> before_;
};

// Compares the gradient of x, which is zero if there was no contribution.
void expect_gradient(Case& c, const std::string& key, const std::string& mask, const Tensor& x);

// The sentence of each word that the mask keeps. i32 [words]
Tensor owners(const Case& c, const std::string& mask);

// Converts a score name of a case to that of a recipe: "scaled_dot" to "scaled-dot".
std::string recipe_name(std::string name);

// The configuration and the sizes of a case, for a score function of this name.
AttentionConfig config_of(const Case& c, const std::string& kind, const std::string& score);
AttentionSizes sizes_of(const Case& c);
// Sets every parameter of the store from the case.
void assign_all(Case& c, ParameterStore& store);

}  // namespace fovea::goldens
