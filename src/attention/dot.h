#pragma once

#include <cmath>

#include "attention/attention.h"
#include "ops/elementwise.h"

namespace fovea {

// Luong et al.: Effective Approaches to Attention-based Neural Machine Translation, EMNLP 2015,
// section 3.1, "dot". States and annotations must have one size.
class DotScore : public Score {
 public:
  Tensor operator()(const Tensor& s, const Memory& memory, const Lookup& look) const override {
    return dot_scores(s, memory.keys, look);  // e_tj = s_tᵀ h_j
  }
};

// Vaswani et al.: Attention Is All You Need, NIPS 2017, section 3.2.1.
class ScaledDotScore : public Score {
 public:
  Tensor operator()(const Tensor& s, const Memory& memory, const Lookup& look) const override {
    const double d = static_cast<double>(s.cols());
    return dot_scores(s * (1 / std::sqrt(d)), memory.keys, look);  // e_tj = s_tᵀ h_j / √d
  }
};

}  // namespace fovea
