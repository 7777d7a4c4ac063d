#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/sentence_frame.h"
#include "text/corpus.h"

namespace fovea {

// Concatenated sentences without padding: sentence i is ids[offsets[i] … offsets[i + 1]).
struct PackedSentences {
  std::vector<int32_t> ids;
  std::vector<int32_t> offsets{0};  // number of sentences + 1

  int64_t sentences() const { return static_cast<int64_t>(offsets.size()) - 1; }
  int64_t tokens() const { return static_cast<int64_t>(ids.size()); }
  std::span<const int32_t> operator[](int64_t i) const;

  // Appends a sentence. `mark` adds <s> before the sentence or </s> after it.
  enum class Mark { none, bos_before, eos_after };
  void add(std::span<const int32_t> sentence, Mark mark);
  // Appends a source with the pieces of its frame, or the words that a decoder reads.
  void add_source(std::span<const int32_t> sentence, const SentenceFrame& frame);
  void add_target_in(std::span<const int32_t> words, const SentenceFrame& frame);
};

// The alignment links of a packed target: word n is linked to the positions
// keys[offsets[n] … offsets[n + 1]) of its source sentence. A word may have no link.
struct PackedLinks {
  std::vector<int32_t> offsets = {}, keys = {};  // both empty if the corpus has no links

  // Appends a sentence of `words` target words; links are (source, target), sorted by target. The
  // frame shifts their positions.
  void add(std::span<const Link> links, int64_t words, const SentenceFrame& frame = {});
  int64_t linked_words() const;
};

// A batch of sentence pairs, with the pieces of a frame around each sentence.
struct PairBatch {
  PackedSentences source;             // ids </s>
  PackedSentences target_in;          // <s> target_prefix ids; only <s> if targets are labels
  PackedSentences target_out;         // target_prefix ids </s>, or the label
  std::vector<int64_t> lines;         // the SentencePair::line of each pair
  std::vector<int64_t> members = {};  // the pairs, as indices into the corpus
  int64_t target_tokens = 0;          // target_out.tokens(): the divisor of a mean loss
  PackedLinks links = {};             // links of target_out, if the corpus has any
};

// How the token budget counts: `packed` counts the actual tokens. `padded` counts the tokens after
// padding every sentence to the longest sentence of its batch, like --max-tokens in fairseq.
enum class TokenCount { packed, padded };

inline constexpr int64_t kAutomaticTokens = 0;  // as BatchOptions::tokens: the trainer selects it

// The options of batches.
struct BatchOptions {
  int64_t tokens = 4096;  // maximum tokens per side of a batch, </s> included
  int64_t sentences = 0;  // maximum number of sentence pairs; 0 means no limit
  TokenCount counted = TokenCount::packed;
  int64_t bucket_width = 4;  // lengths that differ by less can share a bucket
  uint64_t seed = 1;

  void describe(Settings& settings);  // describes all fields but the seed, which the run sets
};

// The batches of one epoch. Pairs of similar length share a batch; the order of the pairs in a
// bucket and the order of the batches are random. Every pair of the corpus is in exactly one batch,
// unless the parts of the corpus have weights. The plan depends only on the corpus, the options and
// the epoch, and gives random access to its batches. So a resumed run needs only the epoch and the
// index of the next batch. A batch exceeds the token budget only if it has a single pair.
//
// REQUIRES: the corpus outlives the plan and does not change.
class BatchPlan {
 public:
  BatchPlan(const Corpus& corpus, const BatchOptions& options, int64_t epoch);

  int64_t size() const { return static_cast<int64_t>(order_.size()); }
  int64_t pairs() const { return static_cast<int64_t>(pairs_.size()); }  // of the epoch
  std::span<const int64_t> members(int64_t i) const;                     // indices into the corpus
  PairBatch batch(int64_t i) const;

 private:
  const Corpus* corpus_;
  std::vector<int64_t> pairs_;   // all pairs, batch after batch
  std::vector<int64_t> starts_;  // [batches + 1]: begin of each batch in pairs_
  std::vector<int64_t> order_;   // batch i has the pairs from starts_[order_[i]] on
};

// Returns a batch of the pairs with these indices, by default with the frame of the corpus.
PairBatch gather(const Corpus& corpus, std::span<const int64_t> members);
PairBatch gather(const Corpus& corpus, std::span<const int64_t> members,
                 const SentenceFrame& frame);

// Returns batches for translation: lists of indices of sentences of similar length. The longest
// sentences come first, so that a lack of memory shows in the first batch. Every index is in
// exactly one batch. Lengths are numbers of pieces without </s>; seed and bucket_width have no
// effect.
std::vector<std::vector<int64_t>> batches_by_length(std::span<const int64_t> lengths,
                                                    const BatchOptions& options);

// Packs the sentences of one batch of batches_by_length(), each with </s>.
PackedSentences pack_source(std::span<const std::vector<int32_t>> sentences,
                            std::span<const int64_t> members);

}  // namespace fovea
