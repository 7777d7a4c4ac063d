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

// A matrix of attention weights from target words (rows) to source words (columns).
struct SoftAlignment {
  int64_t rows = 0, cols = 0;
  std::vector<float> weights = {};  // rows × cols

  float at(int64_t i, int64_t j) const { return weights[i * cols + j]; }
};

// The mean over all layers and heads of the maps of one kind. ExitCode::usage if there is no map.
SoftAlignment mean_attention(std::span<const AttentionMap> maps, std::string_view kind);

// The attention from target to source ("cross") that gives the alignment of a pair.
struct AttentionChoice {
  int64_t layer = -1, head = -1;  // −1: the mean over all
  AlignmentStep step = AlignmentStep::writes;

  std::string name() const;  // "layer 4, mean of heads, next step"
};

// The mean of the chosen maps. ExitCode::usage if the maps have no such layer or head, or no
// attention to the source.
SoftAlignment chosen_attention(std::span<const AttentionMap> maps, const AttentionChoice& choice);

// Every layer and head of the maps, every layer's mean, and the mean of all, at both steps.
std::vector<AttentionChoice> attention_choices(std::span<const AttentionMap> maps);

// Converts weights of pieces to weights of words: the sum over the pieces of a source word, the
// mean over the pieces of a target word. `target_words` and `source_words` have the word number of
// each piece, as Vocabulary::words_of returns them. If a number is missing, that word has weights
// of 0.
SoftAlignment by_word(const SoftAlignment& pieces, std::span<const int> target_words,
                      std::span<const int> source_words);

// The pieces of a line and the word number of each piece.
struct WordPieces {
  std::vector<int32_t> ids = {};  // without </s>
  std::vector<int> words = {0};   // one more than ids: </s> is the last, the number of words

  int count() const { return words.back(); }
  void shorten(int64_t pieces);  // keeps the first pieces; later words then have no pieces
};

// Encodes a line; the word numbers are those of Vocabulary::words_in.
WordPieces cut_words(const Vocabulary& vocabulary, std::string_view line);

// The pieces of both sides of a sentence pair.
struct PairPieces {
  WordPieces source, target;
};

// Forced decoding of all pairs in batches of about `batch_tokens` pieces. Calls `use` once per pair
// with all its attention maps, in no particular order. Skips pairs with an empty side.
using UseMaps = std::function<void(size_t pair, std::span<const AttentionMap> maps)>;
void attend_pairs(const Model& model, std::span<const PairPieces> pairs, int64_t batch_tokens,
                  const UseMaps& use);

// The chosen attention between the words of a pair; </s> is the last row and column.
SoftAlignment word_attention(std::span<const AttentionMap> maps, const AttentionChoice& choice,
                             const PairPieces& pair);

// The links (source, target) from each target word to the source word with the largest weight, the
// first of equal ones. Excludes the last row and column, which are </s>, and does not redistribute
// the weight of </s>. A target word without weight on any source word has no link.
Links hard_alignment(const SoftAlignment& words);

// The reverse direction: for each source word except </s>, the target word with the largest weight
// on it, the first of equal ones; −1 if no target word has weight on it.
std::vector<int> nearest_targets(const SoftAlignment& words);

// Every link with a weight above `threshold`, sorted by target, then source word; excludes </s>.
Links links_above(const SoftAlignment& words, float threshold);

// The Pharaoh format of links: "0-0 1-2 2-1", source word first, counted from 0.
std::string pharaoh(const Links& links);

}  // namespace fovea
