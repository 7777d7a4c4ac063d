#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace fovea {

// A table that gives ids to the n-grams of one segment (a hypothesis and its references), for one
// order n at a time. Equal n-grams have equal ids. The id of an n-gram stands for the exact pair of
// the id of its first n − 1 symbols and its last symbol. It is not a hash, so different n-grams
// never have the same id.
class NgramTable {
 public:
  using Sequence = std::vector<uint32_t>;

  // Starts a segment with order 1. Reuses the memory of the previous segment.
  void start(std::vector<Sequence> sequences);
  void start(std::span<const std::vector<std::u32string_view>> texts);
  void start(std::span<const std::u32string> texts);  // each character is a symbol

  // Continues with the next order.
  void advance();

  // Returns the id of the n-gram at each position of a sequence. All ids are below distinct().
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

// Counts how often each id occurs in a sequence.
void count_ngrams(const NgramTable::Sequence& sequence, uint32_t distinct,
                  std::vector<int>& counts);

}  // namespace fovea
