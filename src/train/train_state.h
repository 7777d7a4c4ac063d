#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "train/loss_spike.h"

namespace fovea {

// The position of a run between two updates. Together with the weights and the optimiser's moments
// it determines all later updates.
struct TrainState {
  int64_t update = 0;            // updates made
  int64_t epoch = 0, batch = 0;  // the next batch, both from 0
  int64_t drawn = 0;             // number of batches drawn so far: the key of the dropout masks

  // Sums since the last log line.
  double loss = 0, nll = 0;
  int64_t words = 0;
  double guided = 0;  // sum over words with links, if alignments guide the attention
  int64_t guided_words = 0;

  // Validation.
  std::optional<double> best;
  int64_t best_update = 0, since_best = 0;
  int64_t epoch_ended = 0;  // the update that ended the last whole epoch
  int64_t validated = 0;    // the update that was validated last
  bool finished = false;    // averaging and the test are done too

  // Updates omitted because of a loss or gradient that was not finite.
  int64_t skipped = 0, skipped_in_a_row = 0, rollbacks = 0;
  double rate_factor = 1;

  SpikeWatch watch;   // of the losses
  int64_t rises = 0;  // rises of the loss that were undone
  int64_t parts = 1;  // number of parts of each batch, if whole batches need too much memory

  bool save_waits = false;  // a save was due at an update whose loss was too high
  bool asked = false;       // saved on request, not because a save was due

  int64_t last_epoch() const {  // of the last update, from 1
    return update > 0 && epoch_ended == update ? epoch : epoch + 1;
  }
};

std::string format_state(const TrainState& state);  // as JSON

// Reads the text that format_state wrote. `path` is the file it comes from. Throws ExitCode::model
// if a field is missing or has another type. Throws ExitCode::data if a value is outside its range
// or contradicts another one. The message names file, field, value and range.
TrainState parse_state(const std::string& text, const std::string& path);

}  // namespace fovea
