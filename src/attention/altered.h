#pragma once

#include <memory>
#include <vector>

#include "attention/attention.h"

namespace fovea {

// Another mechanism whose attention to one sentence is interfered with: words that it may not look
// at, steps at which it has no choice, nothing at all. It must not outlive the other.
class AlteredAttention : public Attention {
 public:
  struct Change {
    std::vector<int32_t> masked = {};  // words that have no weight; others share it
    bool silent = false;               // α = 0, c = 0
    struct Row {
      int64_t step;                 // from 0
      std::vector<double> weights;  // α of this step, per word
    };
    std::vector<Row> forced = {};
  };
  AlteredAttention(const Attention& inner, Change change)
      : inner_(inner), change_(std::move(change)) {}

  Memory remember(const Tensor& h, const Packing& sentences) const override;
  Attended attend(const Query& query, const Memory& memory, const Before& before) const override;

 private:
  std::vector<double> changed(std::vector<double> alpha, int64_t columns, int64_t step) const;
  void fall_back(std::vector<double>& alpha, int64_t columns) const;

  const Attention& inner_;
  Change change_;
};

}  // namespace fovea
