#pragma once

#include <memory>
#include <vector>

#include "attention/attention.h"

namespace fovea {

// An attention mechanism that applies an intervention to the weights of another mechanism, `inner`,
// for one source sentence. `inner` must outlive it.
class AttentionWithIntervention : public Attention {
 public:
  struct Intervention {
    std::vector<int32_t> masked = {};  // indices of words with weight 0; the other weights sum to 1
    bool silent = false;               // true: all weights and the context are 0
    struct Row {
      int64_t step;                 // decoder step, from 0
      std::vector<double> weights;  // the weights of this step, one per word
    };
    std::vector<Row> forced = {};
  };
  AttentionWithIntervention(const Attention& inner, Intervention intervention)
      : inner_(inner), intervention_(std::move(intervention)) {}

  SourceMemory remember(const Tensor& h, const SentenceOffsets& sentences) const override;
  AttentionResult attend(const AttentionQuery& query, const SourceMemory& memory,
                         const AttentionState& previous) const override;
  AttentionState start(const SourceMemory& memory, const Tensor& sentence) const override {
    return inner_.start(memory, sentence);
  }
  std::vector<NamedSeries> series() const override { return inner_.series(); }
  Tensor drawn_weights(const Tensor& weights) const override {
    return inner_.drawn_weights(weights);
  }

 private:
  std::vector<double> intervened(std::vector<double> alpha, int64_t columns, int64_t step) const;
  void fall_back(std::vector<double>& alpha, int64_t columns) const;

  const Attention& inner_;
  Intervention intervention_;
};

}  // namespace fovea
