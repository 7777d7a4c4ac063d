#pragma once

#include <cmath>

#include "attention/attention.h"
#include "ops/elementwise.h"

namespace fovea {

// The score "dot" of Luong et al.: Effective Approaches to Attention-based Neural Machine
// Translation, EMNLP 2015, section 3.1. States and annotations must have the same size.
class DotScore : public ScoreFunction {
 public:
  Tensor operator()(const Tensor& s, const SourceMemory& memory,
                    const RaggedQueries& look) const override {
    return dot_scores(s, memory.keys, look);  // e_tj = s_tᵀ h_j
  }
  std::string formula() const override { return "e_tj = s_t·h_j"; }
  std::vector<std::string> factors() const override { return {"s_t", "h_j"}; }
};

// The dot product divided by √d, as in Vaswani et al.: Attention Is All You Need, NIPS 2017,
// section 3.2.1.
class ScaledDotScore : public ScoreFunction {
 public:
  Tensor operator()(const Tensor& s, const SourceMemory& memory,
                    const RaggedQueries& look) const override {
    const double d = static_cast<double>(s.cols());
    return dot_scores(s * (1 / std::sqrt(d)), memory.keys, look);  // e_tj = s_tᵀ h_j / √d
  }
  std::string formula() const override { return "e_tj = s_t·h_j / √d"; }
  void explain(const Tensor& s, const SourceMemory& memory,
               ComputationSteps& steps) const override {
    const DoubleRow state = rows_of(s).front();
    DoubleRow products;
    for (const DoubleRow& h : rows_of(memory.h)) products.push_back(dot(state, h));
    steps.sums("s_t·h_j", "s_t·h_j: how well query and encoder state agree", products,
               {"s_t", "h_j"});
  }
};

}  // namespace fovea
