#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include "cache/device_beam.h"
#include "models/model.h"

namespace fovea {

// The state of a model between two decoding steps. It has one row per active hypothesis. On the
// CPU, several threads may decode with one model at the same time if each has its own state.
class DecoderState {
 public:
  virtual ~DecoderState() = default;
};

// A model that predicts a target sentence word by word. The caller selects the hypotheses.
class Decodable {
 public:
  // Encodes the sources. The state has one row per sentence.
  virtual std::unique_ptr<DecoderState> start(const TokenBatch& source) const = 0;
  // Computes one step. words[i] is the previous word of row i, in the first step the start symbol.
  // Returns the logits of the next word: [rows, target_words].
  virtual Tensor step(DecoderState& state, std::span<const int32_t> words) const = 0;
  // Replaces the rows of the state: the new row i is the old row parents[i]. Rows may be repeated,
  // dropped and reordered. The state then has parents.size() rows.
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
// Note [Ahead]. In such a search, these functions replace step() and reorder().
class DeviceDecodable {
 public:
  // REQUIRES: the state has made no steps.
  virtual void start_device_search(DecoderState& state, const BeamRules& rules) const = 0;
  // The first call launches the first step, with one row per sentence, and returns an empty result.
  // Each further call launches the next step, with at most `rows` rows (0: no further step). It
  // returns the result of the step that the call before has launched.
  virtual const BeamStepResult& device_step(DecoderState& state, int64_t rows) const = 0;

 protected:
  ~DeviceDecodable() = default;
};

}  // namespace fovea
