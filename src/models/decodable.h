#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include "cache/device_beam.h"
#include "models/model.h"

namespace fovea {

// The state of a model between two decoding steps; a row is one active hypothesis. On the CPU,
// several threads may decode with one model at the same time if each has its own state.
class DecoderState {
 public:
  virtual ~DecoderState() = default;
};

// A model that predicts a target sentence word by word. The caller selects the hypotheses.
class Decodable {
 public:
  // Encodes the sources. The state has one row per sentence.
  virtual std::unique_ptr<DecoderState> start(const TokenBatch& source) const = 0;
  // Feeds one word per row (the start symbol first) and returns the scores of the next word,
  // up to a constant per row (logits): [rows, target_words].
  virtual Tensor step(DecoderState& state, std::span<const int32_t> words) const = 0;
  // Replaces the rows of the state: the new row i is the old row parents[i]. Rows may be repeated,
  // dropped and reordered. Their new number is parents.size().
  virtual void reorder(DecoderState& state, std::span<const int32_t> parents) const = 0;

 protected:
  ~Decodable() = default;
};

// A Decodable model whose running batches accept further sentences.
class Extendable {
 public:
  // Encodes further sources and appends a row for each of them to the state. The result is as if
  // start() had received all sources.
  virtual void extend(DecoderState& state, const TokenBatch& source) const = 0;

 protected:
  ~Extendable() = default;
};

// A Decodable model that also searches on its device: the device selects the hypotheses itself, see
// Note [Ahead]. Then these functions replace step() and reorder().
class DeviceDecodable {
 public:
  // REQUIRES: the state has made no steps.
  virtual void start_device_search(DecoderState& state, const BeamRules& rules) const = 0;
  // The first call launches the first step, with one row per sentence. Each further call launches
  // the next step, with at most `rows` rows (0: no further step), and returns the result of the
  // step before.
  virtual const BeamStepResult& device_step(DecoderState& state, int64_t rows) const = 0;

 protected:
  ~DeviceDecodable() = default;
};

}  // namespace fovea
