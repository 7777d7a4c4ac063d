#pragma once

#include <memory>

#include "cache/device_beam.h"
#include "cache/kv_cache_kernel.h"

namespace fovea::kernel {

// The arrays on the device that receive the next step: the header receives the number of live rows,
// the arrays the inputs of each row. If capacity is 0, there is no next step.
struct NextRows {
  StepHeader* header = nullptr;
  int32_t *words = nullptr, *places = nullptr, *parents = nullptr;
  int32_t *source_first = nullptr, *source_words = nullptr;
  int64_t capacity = 0;
  int32_t place = 0;  // position of the new words in their sentences, equal for all rows
};

// A beam search on a GPU, see Note [Ahead]. For each step, call rank() and choose(), launch the
// next step, and then call result().
class DeviceBeam {
 public:
  virtual ~DeviceBeam() = default;
  // Starts a new search with one row per sentence. The words of source sentence i are the rows
  // offsets[i] … offsets[i + 1] − 1 of the batch.
  virtual void start(const BeamRules& rules, std::span<const int32_t> offsets) = 0;
  // Finds the best words of each row of `scores` [rows, words]. The scores must stay at their
  // address until the device has executed choose().
  virtual void rank(Matrix<const float> scores) = 0;
  virtual void choose(const NextRows& next) = 0;
  // Waits for the results of the last choose() and returns them.
  virtual const BeamStepResult& result() = 0;
  // Releases the device's memory of the search. start() may follow.
  virtual void forget() = 0;
};
std::unique_ptr<DeviceBeam> chooser(Cuda on);

}  // namespace fovea::kernel
