#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include "cache/device_beam.h"
#include "models/model.h"

namespace fovea {

// The state of a model between two decoding steps. It has one row per live hypothesis. On the CPU,
// several threads may decode with one model at the same time if each thread has its own state.
class DecoderState {
 public:
  virtual ~DecoderState() = default;
};

// A model that predicts a target sentence word by word. Its caller selects the hypotheses.
class Decodable {
 public:
  // Encodes the sources. The state has one row per sentence.
  virtual std::unique_ptr<DecoderState> start(const TokenBatch& source) const = 0;
  // Computes one step. words[i] is the previous word of row i; in the first step it is the start
  // symbol. Returns the logits of the next word: [rows, target_words].
  virtual Tensor step(DecoderState& state, std::span<const int32_t> words) const = 0;
  // Replaces the rows of the state: row i becomes a copy of the previous row parents[i]. So rows
  // can be repeated, dropped and reordered. Afterwards the state has parents.size() rows.
  virtual void reorder(DecoderState& state, std::span<const int32_t> parents) const = 0;

 protected:
  ~Decodable() = default;
};

// A Decodable model that can add sentences to a running batch.
class Extendable {
 public:
  // Encodes further sources and appends a row for each of them to the state. Their results are the
  // same as if start() had received all sources.
  virtual void extend(DecoderState& state, const TokenBatch& source) const = 0;

 protected:
  ~Extendable() = default;
};

// A Decodable model that also searches on its device, see Note [Ahead]: the device selects the
// hypotheses itself. In such a search, the functions below replace step() and reorder().
class DeviceDecodable {
 public:
  // Starts the search. REQUIRES: the state has made no steps.
  virtual void start_device_search(DecoderState& state, const BeamRules& rules) const = 0;
  // The first call starts the first step, with one row per sentence, and returns an empty result.
  // Each later call starts the next step, with at most `rows` rows (0: no further step), and
  // returns the result of the previous step.
  virtual const BeamStepResult& device_step(DecoderState& state, int64_t rows) const = 0;

 protected:
  ~DeviceDecodable() = default;
};

}  // namespace fovea
