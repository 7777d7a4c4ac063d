#pragma once

#include <span>
#include <string>
#include <vector>

#include "attention/attention_map.h"
#include "text/vocabulary.h"
#include "view/labelled_matrix.h"

namespace fovea {

// One side of an attention matrix: its labels, and the word of each piece.
struct PictureSide {
  std::vector<std::string> labels;
  std::vector<int> words;
};

enum class PictureUnit { words, pieces };

PictureSide picture_side(const Vocabulary& vocabulary, std::span<const int32_t> ids,
                         PictureUnit unit);

// Returns the mean of attention maps of one kind and one pair, as a matrix to draw. The weight of a
// word is the sum over the pieces of a source word and the mean over the pieces of a target word.
// If there is only one map, the matrix also has the marks of its mechanism, such as p_t. Their
// positions are converted from pieces to words, and a target word of several pieces gets the mean
// of their values. REQUIRES: there is a map.
AttentionMatrix attention_picture(std::span<const AttentionMap> maps, const PictureSide& rows,
                                  const PictureSide& cols, const std::string& title);

}  // namespace fovea
