#pragma once

#include "attention/attention.h"
#include "ops/focus.h"
#include "ops/matmul.h"

namespace fovea {

// Luong et al.: Effective Approaches to Attention-based Neural Machine Translation, EMNLP 2015,
// section 3.1, eq. 8: the state alone says where to look. Words beyond the table cannot be
// looked at.
class LocationScore : public Score {
 public:
  Tensor W_a;  // [positions, state]

  LocationScore(Scope scope, int64_t state, int64_t positions)
      : W_a(scope.declare("W_a", {positions, state}, Init::glorot(state, positions))) {}

  Tensor keys(const Tensor&) const override { return {}; }
  Tensor operator()(const Tensor& s, const Memory&, const Lookup& look) const override {
    return first_columns(linear(s, W_a), look);  // e_tj = (W_a s_t)_j
  }
  std::string formula() const override { return "e_tj = (W_a s_t)_j: the state alone says where"; }
  int64_t reach() const override { return W_a.size(0); }
};

}  // namespace fovea
