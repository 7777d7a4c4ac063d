#pragma once

#include "attention/registry.h"
#include "goldens/case.h"

namespace fovea::goldens {

// A golden attention case fed step by step: at step t, the rows are the sentences that have a t-th
// target word, and what earlier steps left behind goes along with them.
class Steps {
 public:
  // `kind` and `score` in the names of recipes; all sizes are the case's.
  Steps(Case& c, const std::string& kind, const std::string& score);

  // Every step, with the given attention or with that of the constructor.
  void run();

  template <class Kind>
  const Kind& attention() const {
    return dynamic_cast<const Kind&>(*attention_);
  }
  const std::vector<Attended>& all() const { return at_; }
  const std::vector<Before>& before() const { return before_; }
  const Memory& memory() const { return memory_; }
  const Tensor& s() const { return s_; }
  Lookup look(size_t step) const { return {memory_.sentences, sentences_[step]}; }

  // Rows of all steps together, in the order of the sentences' words: [target words, …].
  Tensor joined(const std::vector<Tensor>& steps) const;
  Tensor joined(Tensor Attended::*part) const;
  // e of every target word, from the score alone.
  Tensor scores() const;

  // Gradients of h, of s and of the parameters.
  void expect_gradients() const;

 private:
  Case& c_;
  ParameterStore store_;
  std::unique_ptr<Attention> attention_;
  Packing target_;
  Tensor h_, s_;  // packed, in the order of sentences
  Memory memory_;
  std::vector<Tensor> rows_, sentences_;  // by step: rows of s_, sentences
  std::vector<Attended> at_;
  std::vector<Before> before_;
};

// Zeros where nothing flowed in.
void expect_gradient(Case& c, const std::string& key, const std::string& mask, const Tensor& x);

// Which sentence each word that the mask keeps belongs to. i32 [words]
Tensor owners(const Case& c, const std::string& mask);

// "scaled_dot" in the name of a case is "scaled-dot" in a recipe.
std::string recipe_name(std::string name);

// What a case says of sizes, for a score of this name.
AttentionConfig config_of(const Case& c, const std::string& kind, const std::string& score);
AttentionSizes sizes_of(const Case& c);
// Sets every parameter of the store from the case.
void assign_all(Case& c, ParameterStore& store);

}  // namespace fovea::goldens
