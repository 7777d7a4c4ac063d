#pragma once

#include <memory>
#include <span>
#include <vector>

#include "models/decodable.h"

namespace fovea {

// The models of a search and their states of a batch: one row per live hypothesis. Several models
// are an ensemble. Not thread-safe. The models must outlive it.
class BatchDecoder {
 public:
  explicit BatchDecoder(std::span<const Model* const> models) : models_(models) {}

  int64_t rows() const { return rows_; }
  bool extendable() const;  // whether sentences can join the rows
  // Replaces all rows by one row per sentence.
  void start(const TokenBatch& source);
  // Appends a row per sentence. REQUIRES: extendable().
  void extend(const TokenBatch& source);
  void clear();
  // Feeds one word per row and returns the scores of the next words: logits, or probabilities of
  // an ensemble.
  Tensor step(std::span<const int32_t> words);
  bool ensemble() const { return models_.size() > 1; }
  // The new row i is the old row parents[i].
  void reorder(std::span<const int32_t> parents);
  // The state of the first model, for a search on its device.
  DecoderState& first_state() { return *states_.front(); }

 private:
  std::span<const Model* const> models_;
  std::vector<const Decodable*> decodables_;  // one per model while there are states
  std::vector<std::unique_ptr<DecoderState>> states_;
  int64_t rows_ = 0;
};

}  // namespace fovea
