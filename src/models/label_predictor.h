#pragma once

#include <cstdint>

#include "models/model.h"

namespace fovea {

inline constexpr int32_t kFirstLabel = 4;  // smaller ids are special words

// The scores of all labels for each text of a batch.
struct LabelScores {
  Tensor logits;   // [texts, labels]: column k belongs to target word kFirstLabel + k
  Tensor weights;  // [texts, longest text]: attention, 0 past the end; may be absent
};

// A model that predicts one label for each text.
class LabelPredictor {
 public:
  virtual LabelScores predict_labels(const TokenBatch& texts) const = 0;

 protected:
  ~LabelPredictor() = default;
};

}  // namespace fovea
