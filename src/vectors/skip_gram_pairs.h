#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "vectors/skip_gram.h"
#include "vectors/skip_gram_kernel.h"
#include "vectors/word_stream.h"

namespace fovea {

// A table that draws random numbers from a fixed distribution over 0 … n−1 in constant time (Vose's
// alias method).
class AliasTable {
 public:
  // REQUIRES: weights are finite, ≥ 0 and not all 0; fewer than 2^31.
  explicit AliasTable(std::span<const double> weights);

  // `bits` are 64 random bits. The error of each probability is at most 2^-32.
  int32_t draw(uint64_t bits) const {
    const size_t i = (bits >> 32) * columns_.size() >> 32;
    return static_cast<uint32_t>(bits) < columns_[i].share ? static_cast<int32_t>(i)
                                                           : columns_[i].other;
  }

 private:
  struct Column {
    uint32_t share;  // probability of this column's own index, in units of 2^-32
    int32_t other;
  };
  std::vector<Column> columns_;
};

// A random generator that is cheaper than Philox: SplitMix64 of Steele, Lea and Flood (2014).
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
// Gradient descent processes pairs in sequence, and each pair changes the tables. If threads
// process pairs on shared tables (Hogwild), they race, and no two runs give the same bits. Here the
// vocabulary is divided into kParts parts. The pairs of some thousand sentences are divided into
// kParts × kParts buckets, by the parts of the vocabulary that their two words belong to. For one
// r, the buckets (i, i + r mod kParts) of all i have no row of either table in common. Threads
// process these buckets in parallel, and then continue with the next r. So for any number of
// threads, the result is the same as if one thread processed the buckets in sequence (stratified
// descent: Gemulla et al., KDD 2011). The rows of a bucket fit in the cache.
inline constexpr int32_t kParts = 16;

// The mapping of words to parts of the vocabulary and to rows of the tables. It assigns the most
// frequent words to the parts in alternating order (0 … 15, 15 … 0), so that all parts have a
// similar weight. The rows of a part are adjacent, because otherwise the hardware prefetch would
// load rows that another thread changes.
class WordPartition {
 public:
  explicit WordPartition(int64_t words)
      : rows_(static_cast<int32_t>((words + kParts - 1) / kParts)) {}

  static int32_t part_of(int32_t word) {
    const int32_t column = word % kParts;
    return word / kParts % 2 == 0 ? column : kParts - 1 - column;
  }
  int32_t row_of(int32_t word) const { return part_of(word) * rows_ + word / kParts; }
  int64_t rows() const {
    return int64_t{kParts} * rows_;
  }  // rows of all parts; at least the number of words

 private:
  int32_t rows_;  // rows per part
};

// The word pairs of some sentences as row indices of the tables, in one bucket for each pair of
// parts of the vocabulary.
struct PairBuckets {
  WordPartition partition;
  std::array<std::vector<kernel::SkipGramPair>, kParts * kParts> pairs;

  explicit PairBuckets(const WordPartition& p) : partition(p) {}

  void clear() {
    for (auto& bucket : pairs) bucket.clear();
  }
  void add(int32_t input, int32_t output, bool near) {
    const int32_t i = partition.row_of(input), o = partition.row_of(output);
    pairs[WordPartition::part_of(input) * kParts + WordPartition::part_of(output)].push_back(
        {i, near ? o : ~o});
  }
};

// A sampler of training pairs from sentences. The text must outlive it.
class PairSampler {
 public:
  PairSampler(const WordStream& text, const SkipGramOptions& options);

  // Adds random training pairs of the sentences [first, last). The same arguments give the same
  // pairs.
  void sample(int64_t first, int64_t last, uint64_t key, PairBuckets& buckets) const;

 private:
  const WordStream& text_;
  int64_t window_, negatives_;
  std::vector<uint32_t> kept_;  // probability of keeping each word, in units of 2^-32
  AliasTable noise_;
};

}  // namespace fovea
