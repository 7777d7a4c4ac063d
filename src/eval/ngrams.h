#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace fovea {

// A table that gives numbers to the n-grams of one segment (a hypothesis and its references), for
// one order n at a time. Equal n-grams have equal numbers. The number of an n-gram is that of the
// exact pair of its (n − 1)-grams, not a hash, so different n-grams never have the same number.
class NgramTable {
 public:
  using Sequence = std::vector<uint32_t>;

  // Starts with order 1. Reuses the memory of the previous segment.
  void start(std::vector<Sequence> sequences);
  void start(std::span<const std::vector<std::u32string_view>> texts);
  void start(std::span<const std::u32string> texts);  // each character is a symbol

  // Continues with the next order.
  void advance();

  // Returns the number of the n-gram at each position of a sequence. All numbers are below
  // distinct().
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

// Counts the occurrences of each number in a sequence.
void count_ngrams(const NgramTable::Sequence& sequence, uint32_t distinct,
                  std::vector<int>& counts);

}  // namespace fovea
