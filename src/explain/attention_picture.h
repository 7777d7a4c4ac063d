#pragma once

#include <span>
#include <string>
#include <vector>

#include "attention/attention_map.h"
#include "text/vocabulary.h"
#include "view/labelled_matrix.h"

namespace fovea {

// The rows or the columns of an attention matrix: their labels, and the index of the word of each
// piece.
struct PictureSide {
  std::vector<std::string> labels;
  std::vector<int> words;
};

enum class PictureUnit { words, pieces };

PictureSide picture_side(const Vocabulary& vocabulary, std::span<const int32_t> ids,
                         PictureUnit unit);

// Returns the mean of attention maps of one kind and one sentence pair, as a matrix of words to
// draw. Weights are summed over the pieces of a source word and averaged over the pieces of a
// target word. If there is only one map, the matrix also has the marks of its mechanism, such as
// p_t. Their positions are converted from pieces to words. If a target word has several pieces, its
// marks are the mean of theirs. REQUIRES: `maps` is not empty.
AttentionMatrix attention_picture(std::span<const AttentionMap> maps, const PictureSide& rows,
                                  const PictureSide& cols, const std::string& title);

}  // namespace fovea
