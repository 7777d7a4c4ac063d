#pragma once

#include <cstdint>

namespace fovea {

// A detector of lasting rises of the loss. A rise is several updates in a row whose loss is above
// mean + 5 σ of the updates before them. A single bad batch is not a rise. The detector is part of
// the state of a run, so that a resumed run decides like an uninterrupted run.
struct SpikeWatch {
  double mean = 0, variance = 0;  // of the loss per word, over about the last fifty updates
  int64_t seen = 0;               // number of losses in `mean` and `variance`
  int64_t high = 0;               // number of losses in a row above limit(), up to the last loss

  // Adds the loss of an update. Returns true if this completes a rise.
  bool take(double loss);
  double limit() const;  // losses above this are too high; infinite until enough losses are known
};

}  // namespace fovea
