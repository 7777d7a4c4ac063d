#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <vector>

#include "cache/device_beam.h"
#include "ops/topk.h"

namespace fovea {

// The scores of the next word of each row, at one step, with the k best words of each row. Its
// functions are thread-safe.
class StepScores {
 public:
  // `scores` [rows, words] are logits of one model, or probabilities of an ensemble.
  StepScores(Tensor scores, bool ensemble, int64_t k);
  // The result of a step that a device has selected itself. It has no scores of single words but
  // those of </s>.
  StepScores(const BeamStepResult& result, int64_t k);

  bool finite(int64_t row) const;
  int64_t k() const { return k_; }
  // The j-th best word, −1 if there is none, and its log-probability, which may be above 0 by
  // rounding.
  int32_t word(int64_t row, int64_t j) const;
  double log_prob(int64_t row, int64_t j) const;

  double log_prob_of(int64_t row, int32_t word) const;
  double end_log_prob(int64_t row) const;      // of </s>
  void fetch_ends() const;                     // before many calls of end_log_prob()
  std::vector<double> all(int64_t row) const;  // the scores of all words, as logits
  double log_sum(int64_t row) const;

 private:
  double score(double stored) const;
  double stored(int64_t row, int32_t word) const;

  Tensor scores_;
  bool ensemble_ = false;
  int64_t k_ = 0;
  TopK best_;  // on the host
  mutable std::mutex mutex_;
  mutable std::vector<double> ends_;  // [rows]: scores of </s>; empty: not fetched
  mutable std::map<int64_t, std::vector<double>> rows_;  // copies of rows of a device
};

}  // namespace fovea
