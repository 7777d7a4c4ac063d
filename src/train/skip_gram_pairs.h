#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "ops/skip_gram_kernel.h"
#include "text/word_stream.h"
#include "train/skip_gram.h"

namespace fovea {

// Draws from a fixed distribution over 0 … n−1 in constant time (Vose's alias method).
class AliasTable {
 public:
  // REQUIRES: weights are finite, ≥ 0 and not all 0; fewer than 2^31.
  explicit AliasTable(std::span<const double> weights);

  // `bits` are 64 random ones. Each outcome is wrong by at most 2^-32.
  int32_t draw(uint64_t bits) const {
    const size_t i = (bits >> 32) * columns_.size() >> 32;
    return static_cast<uint32_t>(bits) < columns_[i].share ? static_cast<int32_t>(i)
                                                           : columns_[i].other;
  }

 private:
  struct Column {
    uint32_t share;  // of its own outcome, in 2^-32
    int32_t other;
  };
  std::vector<Column> columns_;
};

// Random bits, cheaper than Philox: Steele, Lea and Flood's SplitMix64 (2014).
class FastRandom {
 public:
  explicit FastRandom(uint64_t seed) : state_(seed) {}
  uint64_t bits() {
    uint64_t x = state_ += 0x9E3779B97F4A7C15u;
    x = (x ^ x >> 30) * 0xBF58476D1CE4E5B9u;
    x = (x ^ x >> 27) * 0x94D049BB133111EBu;
    return x ^ x >> 31;
  }

 private:
  uint64_t state_;
};

// Note [Parts of the vocabulary]
// Gradient descent takes pairs one after the other, each from where the one before has left the
// tables. Threads that do so on shared tables (Hogwild) race, and no two runs give the same bits.
// Here the words are dealt into kParts parts, and the pairs of some thousand sentences into
// kParts × kParts buckets by the parts of their two words. Buckets (i, i + r mod kParts), for one
// r and all i, share no row of either table: threads learn them side by side, then go on to the
// next r. The result is that of one thread learning the buckets one by one, whatever the number of
// threads (stratified descent: Gemulla et al., KDD 2011), and a bucket's rows fit the cache.
inline constexpr int32_t kParts = 16;

// Which part a word belongs to and which row of the tables is its own. The most frequent words are
// dealt there and back, so that all parts are of like weight. The rows of a part follow each other:
// processors fetch ahead, and would otherwise fetch rows that another thread is changing.
class Deal {
 public:
  explicit Deal(int64_t words) : rows_(static_cast<int32_t>((words + kParts - 1) / kParts)) {}

  static int32_t part_of(int32_t word) {
    const int32_t place = word % kParts;
    return word / kParts % 2 == 0 ? place : kParts - 1 - place;
  }
  int32_t row_of(int32_t word) const { return part_of(word) * rows_ + word / kParts; }
  int64_t rows() const { return int64_t{kParts} * rows_; }  // of all parts, at least the words

 private:
  int32_t rows_;  // of a part
};

// The pairs of some sentences as rows of the tables, by the parts of their words.
struct PairBuckets {
  Deal deal;
  std::array<std::vector<kernel::SkipGramPair>, kParts * kParts> pairs;

  explicit PairBuckets(const Deal& d) : deal(d) {}

  void clear() {
    for (auto& bucket : pairs) bucket.clear();
  }
  void add(int32_t input, int32_t output, bool near) {
    const int32_t i = deal.row_of(input), o = deal.row_of(output);
    pairs[Deal::part_of(input) * kParts + Deal::part_of(output)].push_back({i, near ? o : ~o});
  }
};

// Turns sentences into pairs of words.
class PairSampler {
 public:
  PairSampler(const WordStream& text, const SkipGramOptions& options);

  // Adds the pairs of sentences [first, last). The same arguments give the same pairs.
  void sample(int64_t first, int64_t last, uint64_t key, PairBuckets& buckets) const;

 private:
  const WordStream& text_;
  int64_t window_, negatives_;
  std::vector<uint32_t> kept_;  // the share of each word that is kept, in 2^-32
  AliasTable noise_;
};

}  // namespace fovea
