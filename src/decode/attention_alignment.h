#pragma once

#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "attention/attention_map.h"
#include "models/model.h"
#include "text/vocabulary.h"
#include "text/word_alignment.h"

namespace fovea {

// A matrix of attention weights. Rows are target words, columns are source words.
struct SoftAlignment {
  int64_t rows = 0, cols = 0;
  std::vector<float> weights = {};  // rows × cols

  float at(int64_t i, int64_t j) const { return weights[i * cols + j]; }
};

// Returns the mean of the maps of one kind ("encoder", "decoder" or "cross") over all layers and
// heads. If there is no map of this kind, throws ExitCode::usage.
SoftAlignment mean_attention(std::span<const AttentionMap> maps, std::string_view kind);

// A choice of maps of attention from target to source (kind "cross"). Their mean gives the
// alignment of a pair.
struct AttentionChoice {
  int64_t layer = -1, head = -1;  // −1: the mean over all layers or over all heads
  AlignmentStep step = AlignmentStep::writes;

  std::string name() const;  // such as "layer 4, mean of heads, next step"
};

// Returns the mean of the chosen maps. If there is no such layer or head, or no attention to the
// source, throws ExitCode::usage.
SoftAlignment chosen_attention(std::span<const AttentionMap> maps, const AttentionChoice& choice);

// Returns all choices that the maps allow: each head, the mean of each layer and the mean of all
// layers. Each is there twice, once for each AlignmentStep.
std::vector<AttentionChoice> attention_choices(std::span<const AttentionMap> maps);

// Converts weights of pieces to weights of words. Sums over the pieces of a source word, and takes
// the mean over the pieces of a target word. `target_words` and `source_words` hold the index of
// the word of each piece, as Vocabulary::words_of returns them. If a word has no piece, its weights
// are 0.
SoftAlignment by_word(const SoftAlignment& pieces, std::span<const int> target_words,
                      std::span<const int> source_words);

// The pieces of a line, and for each piece the index of its word.
struct WordPieces {
  std::vector<int32_t> ids = {};  // without </s>
  std::vector<int> words = {0};   // index of the word of each id, then for </s> the number of words

  int count() const { return words.back(); }
  void shorten(int64_t pieces);  // keeps the first `pieces` ids; later words then have none
};

// Encodes a line. The indices of words count the words of Vocabulary::words_in, from 0.
WordPieces cut_words(const Vocabulary& vocabulary, std::string_view line);

// The pieces of both sides of a sentence pair.
struct PairPieces {
  WordPieces source, target;
};

// Computes the attention maps of all pairs by forced decoding (the decoder reads the given target),
// in batches of about `batch_tokens` pieces. Calls `use` once per pair, in any order. Skips pairs
// with an empty side.
using UseMaps = std::function<void(size_t pair, std::span<const AttentionMap> maps)>;
void attend_pairs(const Model& model, std::span<const PairPieces> pairs, int64_t batch_tokens,
                  const UseMaps& use);

// Returns the chosen attention between the words of a pair. The last row and the last column are
// </s>.
SoftAlignment word_attention(std::span<const AttentionMap> maps, const AttentionChoice& choice,
                             const PairPieces& pair);

// Returns links (source, target): one from each target word to the source word with its largest
// weight; of equal weights, the first word. Ignores the last row and column, which are </s>, and
// does not redistribute the weight of </s>. If a target word has no weight on any source word, it
// has no link.
Links hard_alignment(const SoftAlignment& words);

// Returns, for each source word except </s>, the target word with the largest weight on it; of
// equal weights, the first word. If no target word has weight on it, −1.
std::vector<int> nearest_targets(const SoftAlignment& words);

// Returns all links with a weight above `threshold`, except those of </s>. They are sorted by
// target word, then by source word.
Links links_above(const SoftAlignment& words, float threshold);

// Returns the links in Pharaoh's format, such as "0-0 1-2 2-1": source word first, counted from 0.
std::string pharaoh(const Links& links);

}  // namespace fovea
