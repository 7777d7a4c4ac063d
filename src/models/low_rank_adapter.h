#pragma once

#include <string>
#include <vector>

#include "nn/params.h"
#include "ops/dropout.h"

namespace fovea {

// The size of an adapter. The scale of the product B A is alpha / rank.
struct AdapterSize {
  int64_t rank = 8;
  double alpha = 16;
};

// The matrices A and B of chosen weights W of a model, which then computes with
//
//   W' = W + (alpha / rank) B A      A [rank, in], B [out, rank]
//
// Hu et al.: LoRA: Low-Rank Adaptation of Large Language Models, ICLR 2022, section 4.1. merge()
// writes W' to the parameters of the model, so every network works with adapters, and decoding
// costs nothing. The gradients of A and B follow from that of W'.
//
// REQUIRES: the model's store outlives the adapter, and its parameters have memory.
class LowRankAdapter {
 public:
  // The targets are names of matrices of the model. The parameters of the adapter are NAME/A and
  // NAME/B; they are declared, but have no memory.
  LowRankAdapter(const ParameterStore& model, const std::vector<std::string>& targets,
                 const AdapterSize& size);

  // A random, B zero: the model does not change at first.
  ParameterStore& parameters() { return store_; }
  const ParameterStore& parameters() const { return store_; }

  // Keeps a copy of the model's present weights as W. Call it before the first of several merges.
  void keep_base();
  // Sets the parameters of the model to W'. Without keep_base(), adds the product to them, once.
  // Dropout applies to A: one mask for all words of a batch.
  void merge(const Dropout& dropout = {}) const;
  // Adds the gradients of A and B to those of parameters(). `dropout` is that of the last merge().
  // REQUIRES: the model's gradients are those of W'.
  void add_gradients(const Dropout& dropout = {}) const;

 private:
  struct Target {
    int64_t out, in;  // sizes of W
    int64_t w, a, b;  // offsets in the stores, of W, A and B
  };
  Tensor flat_a(const Tensor& store) const { return store.window(0, a_size_); }
  Tensor flat_b(const Tensor& store) const {
    return store.window(a_size_, store_.size() - a_size_);
  }
  Tensor a_of(const Target& t, const Tensor& flat) const;
  Tensor b_of(const Target& t, const Tensor& flat) const;

  const ParameterStore& model_;
  ParameterStore store_;  // all A, then all B
  std::vector<Target> targets_;
  int64_t rank_, a_size_ = 0;
  double scale_;
  Tensor base_;
};

}  // namespace fovea
