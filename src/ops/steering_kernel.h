#pragma once

#include <memory>

#include "ops/decoder_memory_kernel.h"
#include "ops/steering.h"

namespace fovea::kernel {

// Where the rows of the next step are to be written: the number of those alive to the header, and
// what a step must know of each. No room: there is no next step.
struct NextRows {
  StepHeader* header = nullptr;
  int32_t *words = nullptr, *places = nullptr, *parents = nullptr;
  int32_t *source_first = nullptr, *source_words = nullptr;
  int64_t room = 0;
  int32_t place = 0;  // of all of them
};

// Chooses on a GPU: see Note [Ahead]. For each step rank(), choose() and, when the next one is
// under way, told().
class Chooser {
 public:
  virtual ~Chooser() = default;
  // Begins anew, with a row for each sentence; their sources are offsets[i] … offsets[i + 1].
  virtual void start(const Steering& rules, std::span<const int32_t> offsets) = 0;
  // The scores must stay where they are until choose() is done with them.
  virtual void rank(Matrix<const float> scores) = 0;
  virtual void choose(const NextRows& next) = 0;
  virtual const Steered& told() = 0;
  // Gives back the device's memory; start() may follow.
  virtual void forget() = 0;
};
std::unique_ptr<Chooser> chooser(Cuda on);

}  // namespace fovea::kernel
