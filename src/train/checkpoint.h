#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/safetensors.h"
#include "nn/params.h"
#include "train/numbered_files.h"
#include "train/optimizer.h"
#include "train/train_state.h"

namespace fovea {

// The settings and the contents of files that a run and the checkpoint it resumes from must have in
// common, as names and values. If a name ends in "(contents)", its value is a fingerprint, a blank
// and a count. Then only the fingerprints are compared.
using RunIdentity = std::vector<std::pair<std::string, std::string>>;

// Returns a description of all differences, separated by "; ": "batch.tokens was 512, now it is
// 1024; the training text has changed (2,000 → 500 pairs)". The result is empty if there are none.
std::string difference(const RunIdentity& saved, const RunIdentity& now);

// Whether a run may resume from a checkpoint with another identity.
enum class ResumeMode { exact, changed };

// The contents of a checkpoint except its tensors.
struct CheckpointNote {
  TrainState state;
  RunIdentity identity;
};

// Returns a checksum over the names and shapes of all parameters in order. Flat weights fit a store
// only if they were written with the same checksum.
std::string layout_of(const ParameterStore& store);

// Returns an upper bound of the number of bytes that write_checkpoint writes for this model.
int64_t checkpoint_bytes(const ParameterStore& store, const Optimizer& optimizer);

// Writes weights, m, v and the moving average as flat tensors with checksums. The write is atomic.
void write_checkpoint(const std::string& path, const CheckpointNote& note,
                      const ParameterStore& store, const Optimizer& optimizer);

struct RestoredCheckpoint {
  TrainState state;
  std::string path = {};
  std::string changed = {};  // description of the accepted differences of the identity
  std::string skipped = {};  // damaged files: "skipped update 30: reason; skipped update 20: …"
};

// Checks the whole checkpoint first, then sets the values of store and optimiser. Throws
// ExitCode::model with the reason if the file is damaged. Throws ExitCode::data if its state is
// impossible or if it has another identity. ResumeMode::changed accepts another identity, unless
// the model differs. If text or batches differ, the run starts the epoch again. If the validation
// text differs, the best result so far no longer counts.
RestoredCheckpoint read_checkpoint(const std::string& path, const RunIdentity& identity,
                                   const ParameterStore& store, const Optimizer& optimizer,
                                   ResumeMode mode = ResumeMode::exact);

// Reads the state and the identity of a checkpoint, without its tensors. Returns nothing if the
// file cannot be read.
std::optional<CheckpointNote> note_of(const std::string& path);

// Writes only the flat weights, for averaging.
void write_weights(const std::string& path, const ParameterStore& store);
// Reads and checks the weights of a checkpoint or of a file that write_weights() wrote. If the
// checkpoint has a moving average, returns the average.
std::vector<float> read_weights(const std::string& path, const ParameterStore& store);

// Returns the mean of the weights of several files as one flat tensor with the store's layout. Adds
// the weights in double, in the order of `paths`. Each file is a checkpoint, a snapshot or a
// model.safetensors with the same parameters as the store; otherwise throws ExitCode::model.
Tensor mean_weights(const std::vector<std::string>& paths, const ParameterStore& store);

}  // namespace fovea
