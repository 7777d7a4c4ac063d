#pragma once

#include <cstdint>

namespace fovea {

// Tells a loss that has left its usual range from a single bad batch: it is a rise when several
// updates in a row cost more than mean + 5 σ of the updates before. Part of a run's state, so that
// a resumed run judges as the one before would have.
struct SpikeWatch {
  double mean = 0, variance = 0;  // of losses per word; the last fifty or so count
  int64_t seen = 0;               // losses these are of
  int64_t high = 0;               // losses in a row, up to the last, that were too high

  // Takes the loss of an update; true where it makes a rise.
  bool take(double loss);
  double limit() const;  // what is too high; infinite while too few losses are known
};

}  // namespace fovea
