#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace fovea {

// Numbers the n-grams of the sequences of one segment (a hypothesis and its references) so that
// equal n-grams have equal numbers. Order n is built from order n−1 by exact pairs, never from
// hashes of contents, so no two different n-grams are ever taken for one.
class NgramTable {
 public:
  using Sequence = std::vector<uint32_t>;

  // Starts at order 1. Reuses the memory of the segment before.
  void start(std::vector<Sequence> sequences);
  void start(std::span<const std::vector<std::u32string_view>> texts);
  void start(std::span<const std::u32string> texts);  // every character a symbol

  // Goes from order n to n+1.
  void advance();

  // The number of the n-gram that begins at each position of a sequence; numbers are < distinct().
  const Sequence& of(size_t sequence) const { return numbers_[sequence]; }
  uint32_t distinct() const { return distinct_; }

 private:
  struct Slot {
    uint64_t key;
    uint32_t number;
    uint32_t round;
  };

  void begin_round(size_t keys);
  uint32_t number(uint64_t key);

  std::vector<Sequence> symbols_, numbers_;
  std::vector<Slot> slots_;
  uint32_t round_ = 0, distinct_ = 0;
};

// How often each number occurs in a sequence.
void count_ngrams(const NgramTable::Sequence& sequence, uint32_t distinct,
                  std::vector<int>& counts);

}  // namespace fovea
