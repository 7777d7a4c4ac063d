#pragma once

#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "models/model.h"
#include "text/links.h"
#include "text/vocabulary.h"

namespace fovea {

// How much each target word (row) looks at each source word (column).
struct SoftAlignment {
  int64_t rows = 0, cols = 0;
  std::vector<float> weights = {};  // rows × cols

  float at(int64_t i, int64_t j) const { return weights[i * cols + j]; }
};

// The mean over all layers and heads of the maps of one kind. Exit::usage where there is none.
SoftAlignment mean_attention(std::span<const AttentionMap> maps, std::string_view kind);

// Which attention from target to source ("cross") speaks for a pair.
struct AttentionChoice {
  int64_t layer = -1, head = -1;  // −1: the mean over all
  AlignmentStep step = AlignmentStep::writes;

  std::string name() const;  // "layer 4, mean of heads, next step"
};

// Exit::usage where the maps have no such layer or head, or no attention to the source at all.
SoftAlignment chosen_attention(std::span<const AttentionMap> maps, const AttentionChoice& choice);

// Every layer and head of the maps, every layer's mean, and the mean of all, at both steps.
std::vector<AttentionChoice> attention_choices(std::span<const AttentionMap> maps);

// From pieces to words: the sum over a source word's pieces, the mean over a target word's.
// The numbers say which word each piece belongs to, as Vocabulary::words_of gives them. Numbers
// may be missing: words without pieces have weights of 0.
SoftAlignment by_word(const SoftAlignment& pieces, std::span<const int> target_words,
                      std::span<const int> source_words);

// A line as a model reads it, and the word that each piece belongs to.
struct WordPieces {
  std::vector<int32_t> ids = {};  // without </s>
  std::vector<int> words = {0};   // one more than ids: </s> is the last, the number of words

  int count() const { return words.back(); }
  void shorten(int64_t pieces);  // words beyond them are left without pieces
};

// The ids of the line and their words, as Vocabulary::words_in counts them.
WordPieces cut_words(const Vocabulary& vocabulary, std::string_view line);

struct PairPieces {
  WordPieces source, target;
};

// Forced decoding: all attention maps of each pair, batch by batch, in no particular order. Pairs
// with an empty side are left out.
using UseMaps = std::function<void(size_t pair, std::span<const AttentionMap> maps)>;
void attend_pairs(const Model& model, std::span<const PairPieces> pairs, int64_t batch_tokens,
                  const UseMaps& use);

// The chosen attention between the words of a pair; </s> is the last row and column.
SoftAlignment word_attention(std::span<const AttentionMap> maps, const AttentionChoice& choice,
                             const PairPieces& pair);

// (source, target) for each target word: the source word with the largest weight, the first of
// equals. The last row and column, which are </s>, do not take part: weight that </s> has is left
// out, not given to others. A target word without weight on any word has no link.
Links hard_alignment(const SoftAlignment& words);

// The other way round: for each source word but </s> the target word that looks at it most, the
// first of equals; −1 where none does.
std::vector<int> nearest_targets(const SoftAlignment& words);

// Every link of more than `threshold`, sorted by target, then source word; without </s> as well.
Links links_above(const SoftAlignment& words, float threshold);

// "0-0 1-2 2-1", source first, counted from 0, as Pharaoh and its successors write it.
std::string pharaoh(const Links& links);

}  // namespace fovea
