#pragma once

#include <memory>
#include <span>

#include "decode/step_scores.h"
#include "models/decodable.h"

namespace fovea {

// A search that the device of a model runs itself (Note [Ahead] in cache/device_beam.h). The host
// makes the same selections from the scores of each step. The model and the state must outlive it.
class DeviceSearch {
 public:
  // Whether a device can follow such rules.
  static bool supports(const BeamRules& rules);
  // Starts the search and its first step, with one row per sentence of the state. REQUIRES:
  // supports(rules).
  DeviceSearch(const DeviceDecodable& model, DecoderState& state, const BeamRules& rules);

  // Returns the result of the current step and starts the next one, with at most `rows` rows.
  const BeamStepResult& step(int64_t rows);
  // Checks that the device has selected these words and parents for the rows of the next step.
  void check_choices(std::span<const int32_t> words, std::span<const int32_t> parents) const;

 private:
  const DeviceDecodable& model_;
  DecoderState& state_;
  const BeamStepResult* result_ = nullptr;
};

}  // namespace fovea
