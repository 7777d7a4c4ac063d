#pragma once

#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "models/model.h"

namespace fovea {

// How much each target word (row) looks at each source word (column).
struct SoftAlignment {
  int64_t rows = 0, cols = 0;
  std::vector<float> weights = {};  // rows × cols

  float at(int64_t i, int64_t j) const { return weights[i * cols + j]; }
};

SoftAlignment as_alignment(const AttentionMap& map);

// The mean over all layers and heads of the maps of one kind. REQUIRES: there is one.
SoftAlignment mean_attention(std::span<const AttentionMap> maps, std::string_view kind);

// From pieces to words: the sum over a source word's pieces, the mean over a target word's.
// The numbers say which word each piece belongs to, as Vocabulary::words_of gives them.
SoftAlignment by_word(const SoftAlignment& pieces, std::span<const int> target_words,
                      std::span<const int> source_words);

// (source, target) for each target word: the source word with the largest weight, the first of
// equals. The last row and column, which are </s>, do not take part.
using Links = std::vector<std::pair<int, int>>;
Links hard_alignment(const SoftAlignment& words);

// "0-0 1-2 2-1", source first, counted from 0, as Pharaoh and its successors write it.
std::string pharaoh(const Links& links);

}  // namespace fovea
