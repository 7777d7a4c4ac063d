#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "text/corpus.h"

namespace fovea {

// Sentences one after another, no padding: sentence i is ids[offsets[i] … offsets[i + 1]).
struct Packed {
  std::vector<int32_t> ids;
  std::vector<int32_t> offsets{0};  // sentences + 1

  int64_t sentences() const { return static_cast<int64_t>(offsets.size()) - 1; }
  int64_t tokens() const { return static_cast<int64_t>(ids.size()); }
  std::span<const int32_t> operator[](int64_t i) const;

  // Appends a sentence, with <s> before or </s> after it where asked.
  enum class Mark { none, bos_before, eos_after };
  void add(std::span<const int32_t> sentence, Mark mark);
};

// Where the words of a packed target come from: word n from the positions
// keys[offsets[n] … offsets[n + 1]) of its source sentence, which may be none.
struct PackedLinks {
  std::vector<int32_t> offsets = {}, keys = {};  // both empty: there are no links at all

  // Appends a sentence of so many target words; links are (source, target), by target.
  void add(std::span<const Link> links, int64_t words);
  int64_t linked_words() const;
};

struct PairBatch {
  Packed source;                      // ids </s>
  Packed target_in;                   // <s> ids; of labels: <s>
  Packed target_out;                  // ids </s>; of labels: the label
  std::vector<int64_t> lines;         // where each pair came from, as Pair::line
  std::vector<int64_t> members = {};  // the pairs, as indices into the corpus
  int64_t target_tokens = 0;          // target_out.tokens(): what a loss is averaged over
  PackedLinks links = {};             // of target_out, where the corpus has links
};

// What the token budget counts: the tokens there are, or those there would be if every
// sentence were padded to the longest of its batch (as --max-tokens in fairseq).
enum class Counted { packed, padded };

inline constexpr int64_t kAutomaticTokens = 0;  // stands for a number that is yet to be found

struct BatchOptions {
  int64_t tokens = 4096;  // most tokens of either side in a batch, </s> counted
  int64_t sentences = 0;  // most sentences; 0 means no limit
  Counted counted = Counted::packed;
  int64_t bucket_width = 4;  // lengths that differ by less may share a bucket
  uint64_t seed = 1;

  void describe(Settings& settings);  // all but the seed, which a run sets as a whole
};

// The batches of one epoch: pairs of like length together, both the pairs of a bucket and the
// batches in random order. Every pair of the corpus is in exactly one batch. The plan depends
// only on the corpus, the options and the epoch, and any batch can be asked for, so that
// (epoch, index) is all a resumed run needs. A batch exceeds the budget only where it is a
// single pair that alone does.
//
// REQUIRES: the corpus outlives the plan and does not change.
class BatchPlan {
 public:
  BatchPlan(const Corpus& corpus, const BatchOptions& options, int64_t epoch);

  int64_t size() const { return static_cast<int64_t>(order_.size()); }
  std::span<const int64_t> members(int64_t i) const;  // indices into the corpus
  PairBatch batch(int64_t i) const;

 private:
  const Corpus* corpus_;
  std::vector<int64_t> pairs_;   // all pairs, batch after batch
  std::vector<int64_t> starts_;  // batches + 1, into pairs_
  std::vector<int64_t> order_;   // the batch that comes i-th
};

// Pairs given by index as a batch.
PairBatch gather(const Corpus& corpus, std::span<const int64_t> members);

// Batches for translating: indices of sentences of like length, longest first (what is going to
// fail for memory fails at once). Every index is in exactly one batch; results are put back by
// index. Lengths are pieces without </s>; seed and bucket_width have no effect.
std::vector<std::vector<int64_t>> batches_by_length(std::span<const int64_t> lengths,
                                                    const BatchOptions& options);

// Source sentences of one such batch, each with </s>.
Packed pack_source(std::span<const std::vector<int32_t>> sentences,
                   std::span<const int64_t> members);

}  // namespace fovea
