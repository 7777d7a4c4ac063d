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

// The mean of attention maps of one kind and one pair, as a matrix to draw. Word weights are sums
// over the pieces of a source word and means over the pieces of a target word. If there is only one
// map, the matrix has the marks of its mechanism: positions between pieces become positions between
// words, and a target word of several pieces has their mean. REQUIRES: there is a map.
AttentionMatrix attention_picture(std::span<const AttentionMap> maps, const PictureSide& rows,
                                  const PictureSide& cols, const std::string& title);

}  // namespace fovea
