#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/safetensors.h"
#include "nn/params.h"
#include "train/optimizer.h"
#include "train/series.h"
#include "train/spikes.h"

namespace fovea {

// Where a run stands between two updates. With the weights and the optimiser's moments it decides
// all that follows.
struct TrainState {
  int64_t update = 0;            // updates made
  int64_t epoch = 0, batch = 0;  // the next batch, both from 0
  int64_t drawn = 0;             // batches drawn in all: what dropout masks are keyed by

  // Since the last line of the log.
  double loss = 0, nll = 0;
  int64_t words = 0;
  double guided = 0;  // of words with links, where alignments guide
  int64_t guided_words = 0;

  // Validation.
  std::optional<double> best;
  int64_t best_update = 0, since_best = 0;
  int64_t epoch_ended = 0;  // the update that ended the last whole epoch
  int64_t validated = 0;    // the update that was validated last
  bool finished = false;    // averaged and tested as well

  // Updates left out because of a loss or gradient that was not finite.
  int64_t skipped = 0, skipped_in_a_row = 0, rollbacks = 0;
  double rate_factor = 1;

  SpikeWatch watch;   // of the losses
  int64_t rises = 0;  // of the losses that were undone
  int64_t parts = 1;  // batches are cut into that many: whole ones need more memory than there is

  bool save_waits = false;  // was due at an update with a loss that was too high
  bool asked = false;       // this was saved when somebody asked for it, not when it was due
};

// What must agree between a run and a checkpoint it goes on from: names and values.
using Identity = std::vector<std::pair<std::string, std::string>>;

// The first name whose values differ with both values, as text; empty where they agree.
std::string difference(const Identity& saved, const Identity& now);

// What a checkpoint holds besides tensors.
struct CheckpointNote {
  TrainState state;
  Identity identity;
};

// The names and shapes of all parameters in order, as a number: flat weights belong to it.
std::string layout_of(const ParameterStore& store);

// Writes weights, m, v and the moving average as flat tensors with checksums, whole or not at all.
void write_checkpoint(const std::string& path, const CheckpointNote& note,
                      const ParameterStore& store, const Optimizer& optimizer);

// Checks all of a checkpoint before anything is changed, then sets the values of store and
// optimiser. Throws Exit::model with the reason where it is damaged, Exit::data with the name of
// the first field where it was made with another identity.
TrainState read_checkpoint(const std::string& path, const Identity& identity,
                           const ParameterStore& store, const Optimizer& optimizer);

struct Restored {
  TrainState state;
  std::string skipped;  // "skipped update 30: reason; skipped update 20: reason"; empty mostly
};

// The newest of the checkpoints of these updates, ascending, that is not damaged; nothing where
// there are none. Throws Exit::model where there are some and all are damaged, Exit::data as
// read_checkpoint does.
std::optional<Restored> restore_newest(const FileSeries& series, const Identity& identity,
                                       const ParameterStore& store, const Optimizer& optimizer,
                                       std::vector<int64_t> updates);

// What a checkpoint says of itself, its tensors unseen; nothing where it cannot be read. And the
// newest.
std::optional<CheckpointNote> note_of(const std::string& path);
std::optional<CheckpointNote> newest_note(const FileSeries& series);

// Flat weights alone, for averaging.
void write_weights(const std::string& path, const ParameterStore& store);
// Whether a file holds flat weights: a checkpoint or what write_weights wrote.
bool is_flat(const SafetensorsFile& file);
// Of a file by write_weights, or of a checkpoint (its moving average where it has one), checked.
std::vector<float> read_weights(const std::string& path, const ParameterStore& store);

}  // namespace fovea
