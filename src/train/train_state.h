#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "train/loss_spike.h"

namespace fovea {

// The position of a run between two updates. Together with the weights and the optimiser's moments
// it determines all later updates.
struct TrainState {
  int64_t update = 0;            // number of updates made
  int64_t epoch = 0, batch = 0;  // position of the next batch, both from 0
  int64_t drawn = 0;             // number of batches taken so far: key of dropout masks

  // Sums since the last log line.
  double loss = 0, nll = 0;
  int64_t words = 0;
  double guided = 0;  // sum over words with links, if alignments guide attention
  int64_t guided_words = 0;

  // Validation.
  std::optional<double> best;
  int64_t best_update = 0, since_best = 0;
  int64_t epoch_ended = 0;  // value of `update` at the end of the last whole epoch
  int64_t validated = 0;    // value of `update` at the last validation
  bool finished = false;    // training, averaging and the test are done

  // Numbers of updates that were skipped because the loss or the gradient was not finite, and of
  // the rollbacks after them.
  int64_t skipped = 0, skipped_in_a_row = 0, rollbacks = 0;
  double rate_factor = 1;

  SpikeWatch watch;   // detects rises of the loss
  int64_t rises = 0;  // number of rises of the loss that were undone
  int64_t parts = 1;  // each batch is split into this number of parts, to fit into memory

  bool save_waits = false;  // a scheduled save waits until the loss is no longer too high
  bool asked = false;       // the save of this state was requested and not scheduled

  int64_t last_epoch() const {  // the epoch of the last update, from 1
    return update > 0 && epoch_ended == update ? epoch : epoch + 1;
  }
};

std::string format_state(const TrainState& state);  // as JSON

// Reads the text that format_state() wrote. `path` is the file of the text. Throws ExitCode::model
// if a field is missing or has another type. Throws ExitCode::data if a value is outside its range
// or contradicts another one. The message names file, field, value and range.
TrainState parse_state(const std::string& text, const std::string& path);

}  // namespace fovea
