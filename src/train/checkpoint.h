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
#include "train/train_state.h"

namespace fovea {

// The settings and contents that a run and the checkpoint it resumes from must have in common:
// names and values. The value of a name that ends in "(contents)" is a fingerprint, a blank and the
// number of things counted; fingerprints alone are compared.
using Identity = std::vector<std::pair<std::string, std::string>>;

// All differences in words, separated by "; ": "batch.tokens was 512, now it is 1024; the training
// text has changed (2,000 → 500 pairs)". Empty if there are none.
std::string difference(const Identity& saved, const Identity& now);

// Whether a run may resume from a checkpoint with another identity.
enum class ResumeMode { exact, changed };

// What a checkpoint holds besides tensors.
struct CheckpointNote {
  TrainState state;
  Identity identity;
};

// The names and shapes of all parameters in order, as a number: flat weights belong to it.
std::string layout_of(const ParameterStore& store);

// Bytes that write_checkpoint needs for such a model.
int64_t checkpoint_bytes(const ParameterStore& store, const Optimizer& optimizer);

// Writes weights, m, v and the moving average as flat tensors with checksums, whole or not at all.
void write_checkpoint(const std::string& path, const CheckpointNote& note,
                      const ParameterStore& store, const Optimizer& optimizer);

struct Restored {
  TrainState state;
  std::string path = {};
  std::string changed = {};  // differences of identity that ResumeMode::changed accepted
  std::string skipped = {};  // "skipped update 30: reason; skipped update 20: reason"; mostly empty
};

// Checks all of a checkpoint before anything is changed, then sets the values of store and
// optimiser. Throws Exit::model with the reason if it is damaged, Exit::data if its state is
// impossible, or if it has another identity. ResumeMode::changed accepts another identity, except
// of the model: if text or batches differ, the epoch begins again; if the validation text differs,
// the best result so far no longer counts.
Restored read_checkpoint(const std::string& path, const Identity& identity,
                         const ParameterStore& store, const Optimizer& optimizer,
                         ResumeMode mode = ResumeMode::exact);

// The newest undamaged one of the checkpoints of these updates, ascending; nothing if there are
// none. Throws Exit::model if all are damaged, Exit::data as read_checkpoint does.
std::optional<Restored> restore_newest(const FileSeries& series, std::vector<int64_t> updates,
                                       const ParameterStore& store, const Optimizer& optimizer,
                                       const Identity& identity,
                                       ResumeMode mode = ResumeMode::exact);

// State and identity of a checkpoint, without its tensors; nothing if it cannot be read. And those
// of the newest.
std::optional<CheckpointNote> note_of(const std::string& path);
std::optional<CheckpointNote> newest_note(const FileSeries& series);

// Flat weights alone, for averaging.
void write_weights(const std::string& path, const ParameterStore& store);
// Whether a file holds flat weights: a checkpoint or what write_weights wrote.
bool is_flat(const SafetensorsFile& file);
// Of a file by write_weights, or of a checkpoint (its moving average where it has one), checked.
std::vector<float> read_weights(const std::string& path, const ParameterStore& store);

}  // namespace fovea
