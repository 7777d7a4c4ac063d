#pragma once

#include "attention/attention.h"
#include "ops/attention_window.h"
#include "ops/matmul.h"

namespace fovea {

// The score "location" of Luong et al.: Effective Approaches to Attention-based Neural Machine
// Translation, EMNLP 2015, section 3.1, eq. 8. It depends on the decoder state only. If W_a has no
// row for the position of a word, the word gets no weight.
class LocationScore : public ScoreFunction {
 public:
  Tensor W_a;  // [positions, state]

  LocationScore(ParameterScope scope, int64_t state, int64_t positions)
      : W_a(scope.declare("W_a", {positions, state}, ParameterInit::glorot(state, positions))) {}

  Tensor keys(const Tensor&) const override { return {}; }
  Tensor operator()(const Tensor& s, const SourceMemory&,
                    const RaggedQueries& look) const override {
    return first_columns(linear(s, W_a), look);  // e_tj = (W_a s_t)_j
  }
  std::string formula() const override {
    return "e_tj = (W_a s_t)_j = s_t·w_j: the score depends on the state only";
  }
  std::vector<std::string> factors() const override { return {"s_t", "w_j"}; }
  void explain(const Tensor&, const SourceMemory& memory, ComputationSteps& steps) const override {
    std::vector<DoubleRow> rows = rows_of(W_a);
    rows.resize(static_cast<size_t>(memory.h.rows()),
                DoubleRow(static_cast<size_t>(W_a.cols()), 0));
    steps.words("w_j", "w_j: row j of W_a, learned for position j", std::move(rows));
  }
  int64_t reach() const override { return W_a.size(0); }
};

}  // namespace fovea
