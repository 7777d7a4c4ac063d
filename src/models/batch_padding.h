#pragma once

#include <cstdint>
#include <vector>

#include "models/model.h"

namespace fovea {

// How much padding is added to a batch. Padding contributes no gradient: see Note [Filling].
enum class BatchPadding { nothing, blocks, few_sizes };

// Note [Filling]
// In training, fill() adds sentences of padding until the number of words is a multiple of 64
// (BatchPadding::blocks). So products have few different sizes, and each size is prepared only
// once. If steps are replayed as CUDA graphs (BatchPadding::few_sizes), the number of sentences and
// the length of the longest sentence must have few different values, too. These are multiples of
// numbers that grow with the batch, so that padding adds only a few percent. Padding attends only
// to itself and has no label, so it contributes no gradient.
struct PaddingUnit {
  int64_t words, sentences, longest;  // the sizes of a padded batch are multiples of these
};
PaddingUnit padding_unit(BatchPadding padding, int64_t words, int64_t sentences);

int64_t round_up(int64_t n, int64_t to);

// The sentences of a batch, one after another, followed by sentences of padding (words of id 0).
struct PaddedSentences {
  std::vector<int32_t> ids, offsets;
  int64_t longest = 0;

  explicit PaddedSentences(const TokenBatch& sentences);
  int64_t words() const { return static_cast<int64_t>(ids.size()); }
  int64_t sentences() const { return static_cast<int64_t>(offsets.size()) - 1; }

  // Whether `count` sentences of padding can fill up the words to a multiple of unit.words. Each of
  // them has at least one word. Its maximum length is the smaller of `max_length` and `longest`,
  // rounded up to a multiple of unit.longest.
  bool can_add(int64_t count, const PaddingUnit& unit, int64_t max_length) const;
  void add(int64_t count, const PaddingUnit& unit);
};

// Adds sentences of padding to one side, or an equal number of them to both sides. No sentence of
// padding is longer than `max_length`.
void fill(PaddedSentences& side, BatchPadding padding, int64_t max_length);
void fill(PaddedSentences& source, PaddedSentences& target, BatchPadding padding,
          int64_t max_length);

}  // namespace fovea
